; args: out ptr(f32), i64 w(cols), i64 n rows..., float cx, cy ; per pixel z=z^2+c until |z|^2>4 or it>=maxit
define void @julia(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %out = load ptr, ptr %args, align 8, !invariant.load !9
  %g1 = getelementptr inbounds i8, ptr %args, i64 8
  %w = load i64, ptr %g1, align 8, !invariant.load !9
  %g2 = getelementptr inbounds i8, ptr %args, i64 16
  %cx = load float, ptr %g2, align 4, !invariant.load !9
  %g3 = getelementptr inbounds i8, ptr %args, i64 20
  %cy = load float, ptr %g3, align 4, !invariant.load !9
  %g4 = getelementptr inbounds i8, ptr %args, i64 24
  %maxit = load i32, ptr %g4, align 4, !invariant.load !9
  %g5 = getelementptr inbounds i8, ptr %args, i64 28
  %scale = load float, ptr %g5, align 4, !invariant.load !9
  br label %outer
outer:
  %k = phi i64 [ %lo, %entry ], [ %k1, %outend ]
  %mi = icmp slt i64 %k, %hi
  br i1 %mi, label %obody, label %exit
obody:
  %r = udiv i64 %k, %w
  %c = urem i64 %k, %w
  %rf = uitofp i64 %r to float
  %cf = uitofp i64 %c to float
  %zx0m = fmul fast float %cf, %scale
  %zx0 = fsub fast float %zx0m, 2.0
  %zy0m = fmul fast float %rf, %scale
  %zy0 = fsub fast float %zy0m, 1.0
  br label %head
head:
  %it = phi i32 [ 0, %obody ], [ %it1, %body ]
  %zx = phi float [ %zx0, %obody ], [ %zx1, %body ]
  %zy = phi float [ %zy0, %obody ], [ %zy1, %body ]
  %zx2 = fmul fast float %zx, %zx
  %zy2 = fmul fast float %zy, %zy
  %n2 = fadd fast float %zx2, %zy2
  %c0 = fcmp fast olt float %n2, 4.0
  %c1 = icmp slt i32 %it, %maxit
  %go = and i1 %c0, %c1
  br i1 %go, label %body, label %outend
body:
  %d = fsub fast float %zx2, %zy2
  %zx1 = fadd fast float %d, %cx
  %p = fmul fast float %zx, %zy
  %p2 = fmul fast float %p, 2.0
  %zy1 = fadd fast float %p2, %cy
  %it1 = add nsw i32 %it, 1
  br label %head
outend:
  %itf = sitofp i32 %it to float
  %res = fmul fast float %itf, 0x3F947AE140000000
  %q = getelementptr inbounds float, ptr %out, i64 %k
  store float %res, ptr %q, align 4
  %k1 = add nuw nsw i64 %k, 1
  br label %outer
exit:
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
