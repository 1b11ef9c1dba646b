define void @saxpy(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %yp = getelementptr inbounds i8, ptr %args, i64 8
  %y = load ptr, ptr %yp, align 8, !invariant.load !9
  %ap = getelementptr inbounds i8, ptr %args, i64 16
  %a = load float, ptr %ap, align 4, !invariant.load !9
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %i1, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %exit
body:
  %xi = getelementptr inbounds float, ptr %x, i64 %i
  %yi = getelementptr inbounds float, ptr %y, i64 %i
  %xv = load float, ptr %xi, align 4, !alias.scope !1, !noalias !2
  %yv = load float, ptr %yi, align 4, !alias.scope !2, !noalias !1
  %m = fmul contract float %xv, %a
  %s = fadd contract float %m, %yv
  store float %s, ptr %yi, align 4, !alias.scope !2, !noalias !1
  %i1 = add nuw nsw i64 %i, 1
  br label %loop
exit:
  ret void
}
attributes #0 = { nounwind }
!0 = distinct !{!0}
!1 = !{!3}
!2 = !{!4}
!3 = distinct !{!3, !0}
!4 = distinct !{!4, !0}
!9 = !{}
