define void @fill(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %ap = getelementptr inbounds i8, ptr %args, i64 8
  %a = load float, ptr %ap, align 4, !invariant.load !9
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %exit
body:
  %xi = getelementptr inbounds float, ptr %x, i64 %i
  store float %a, ptr %xi, align 4
  %i1 = add nuw nsw i64 %i, 1
  br label %loop
exit:
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
