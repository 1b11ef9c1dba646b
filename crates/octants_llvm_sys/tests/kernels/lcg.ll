define void @lcg(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %g1 = getelementptr inbounds i8, ptr %args, i64 8
  %n = load i32, ptr %g1, align 4, !invariant.load !9
  %any = icmp slt i64 %lo, %hi
  br i1 %any, label %outer, label %exit
outer:
  %i = phi i64 [ %lo, %entry ], [ %i1, %outend ]
  %q0 = getelementptr inbounds i32, ptr %x, i64 %i
  %v = load i32, ptr %q0, align 4
  %anyj = icmp sgt i32 %n, 0
  br i1 %anyj, label %inner, label %outend
inner:
  %j = phi i32 [ 0, %outer ], [ %j1, %inner ]
  %s = phi i32 [ %v, %outer ], [ %s2, %inner ]
  %s1 = mul i32 %s, 1664525
  %s2 = add i32 %s1, 1013904223
  %j1 = add nuw nsw i32 %j, 1
  %mj = icmp slt i32 %j1, %n
  br i1 %mj, label %inner, label %outend
outend:
  %t = phi i32 [ %v, %outer ], [ %s2, %inner ]
  store i32 %t, ptr %q0, align 4
  %i1 = add nuw nsw i64 %i, 1
  %mi = icmp slt i64 %i1, %hi
  br i1 %mi, label %outer, label %exit
exit:
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
