define void @lcg(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %x = load ptr, ptr %args, align 8, !invariant.load !9
  %g1 = getelementptr inbounds i8, ptr %args, i64 8
  %n = load i32, ptr %g1, align 4, !invariant.load !9
  br label %outer
outer:
  %i = phi i64 [ %lo, %entry ], [ %i1, %outend ]
  %mi = icmp slt i64 %i, %hi
  br i1 %mi, label %obody, label %exit
obody:
  %q0 = getelementptr inbounds i32, ptr %x, i64 %i
  %v = load i32, ptr %q0, align 4
  br label %inner
inner:
  %j = phi i32 [ 0, %obody ], [ %j1, %ibody ]
  %s = phi i32 [ %v, %obody ], [ %s2, %ibody ]
  %mj = icmp slt i32 %j, %n
  br i1 %mj, label %ibody, label %outend
ibody:
  %s1 = mul i32 %s, 1664525
  %s2 = add i32 %s1, 1013904223
  %j1 = add nuw nsw i32 %j, 1
  br label %inner
outend:
  store i32 %s, ptr %q0, align 4
  %i1 = add nuw nsw i64 %i, 1
  br label %outer
exit:
  ret void
}
attributes #0 = { nounwind }
!9 = !{}
