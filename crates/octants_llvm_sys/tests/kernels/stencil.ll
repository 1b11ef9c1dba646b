; args: a ptr, b ptr, i64 n (cols=stride), i64 w (inner extent n-2); rows/cols 1..n-1 flattened
define void @stencil(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %a = load ptr, ptr %args, align 8, !invariant.load !9
  %p1 = getelementptr inbounds i8, ptr %args, i64 8
  %b = load ptr, ptr %p1, align 8, !invariant.load !9
  %p2 = getelementptr inbounds i8, ptr %args, i64 16
  %n = load i64, ptr %p2, align 8, !invariant.load !9, !range !10
  %p3 = getelementptr inbounds i8, ptr %args, i64 24
  %w = load i64, ptr %p3, align 8, !invariant.load !9, !range !10
  br label %rows
rows:
  %k = phi i64 [ %lo, %entry ], [ %k1, %rowend ]
  %mr = icmp slt i64 %k, %hi
  br i1 %mr, label %row, label %exit
row:
  %r = udiv i64 %k, %w
  %rw = mul nuw nsw i64 %r, %w
  %c = sub nuw nsw i64 %k, %rw
  %left = sub nuw nsw i64 %hi, %k
  %room = sub nuw nsw i64 %w, %c
  %len = call i64 @llvm.umin.i64(i64 %left, i64 %room)
  %cend = add nuw nsw i64 %c, %len
  %i = add nuw nsw i64 %r, 1
  br label %cols
cols:
  %jj = phi i64 [ %c, %row ], [ %jj1, %col ]
  %more = icmp slt i64 %jj, %cend
  br i1 %more, label %col, label %rowend
col:
  %j = add nuw nsw i64 %jj, 1
  %im = add nsw i64 %i, -1
  %ip = add nsw i64 %i, 1
  %jm = add nsw i64 %j, -1
  %jp = add nsw i64 %j, 1
  %o0 = mul nsw i64 %im, %n
  %o0b = add nsw i64 %o0, %j
  %q0 = getelementptr inbounds float, ptr %a, i64 %o0b
  %v0 = load float, ptr %q0, align 4, !alias.scope !1, !noalias !2
  %o1 = mul nsw i64 %ip, %n
  %o1b = add nsw i64 %o1, %j
  %q1 = getelementptr inbounds float, ptr %a, i64 %o1b
  %v1 = load float, ptr %q1, align 4, !alias.scope !1, !noalias !2
  %o2 = mul nsw i64 %i, %n
  %o2b = add nsw i64 %o2, %jm
  %q2 = getelementptr inbounds float, ptr %a, i64 %o2b
  %v2 = load float, ptr %q2, align 4, !alias.scope !1, !noalias !2
  %o3b = add nsw i64 %o2, %jp
  %q3 = getelementptr inbounds float, ptr %a, i64 %o3b
  %v3 = load float, ptr %q3, align 4, !alias.scope !1, !noalias !2
  %s0 = fadd contract float %v0, %v1
  %s1 = fadd contract float %s0, %v2
  %s2 = fadd contract float %s1, %v3
  %s3 = fmul contract float %s2, 0.25
  %o4b = add nsw i64 %o2, %j
  %q4 = getelementptr inbounds float, ptr %b, i64 %o4b
  store float %s3, ptr %q4, align 4, !alias.scope !2, !noalias !1
  %jj1 = add nuw nsw i64 %jj, 1
  br label %cols
rowend:
  %k1 = add nuw nsw i64 %k, %len
  br label %rows
exit:
  ret void
}
declare i64 @llvm.umin.i64(i64,i64)
attributes #0 = { nounwind }
!0 = distinct !{!0}
!1 = !{!3}
!2 = !{!4}
!3 = distinct !{!3, !0}
!4 = distinct !{!4, !0}
!9 = !{}
!10 = !{i64 0, i64 9223372036854775807}
