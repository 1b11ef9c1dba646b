; x, ptr to per-worker partial result
define void @sum(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %rp = getelementptr inbounds i8, ptr %args, i64 8
  %r = load ptr, ptr %rp, align 8, !invariant.load !9
  %any = icmp slt i64 %lo, %hi
  br i1 %any, label %loop, label %exit
loop:
  %i = phi i64 [ %lo, %entry ], [ %i1, %loop ]
  %acc = phi float [ 0.0, %entry ], [ %s, %loop ]
  %xi = getelementptr inbounds float, ptr %x, i64 %i
  %xv = load float, ptr %xi, align 4
  %s = fadd reassoc nsz contract float %acc, %xv
  %i1 = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i1, %hi
  br i1 %more, label %loop, label %exit
exit:
  %tot = phi float [ 0.0, %entry ], [ %s, %loop ]
  %old = atomicrmw fadd ptr %r, float %tot monotonic
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
