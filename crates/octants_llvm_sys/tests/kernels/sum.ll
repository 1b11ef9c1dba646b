; x, ptr to per-worker partial result
define void @sum(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %rp = getelementptr inbounds i8, ptr %args, i64 8
  %r = load ptr, ptr %rp, align 8, !invariant.load !9
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %acc = phi float [ 0.0, %entry ], [ %s, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %exit
body:
  %xi = getelementptr inbounds float, ptr %x, i64 %i
  %xv = load float, ptr %xi, align 4
  %s = fadd reassoc nsz contract float %acc, %xv
  %i1 = add nuw nsw i64 %i, 1
  br label %loop
exit:
  %old = atomicrmw fadd ptr %r, float %acc monotonic
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
