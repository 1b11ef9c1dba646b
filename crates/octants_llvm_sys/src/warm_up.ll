; A reduction over a product of two arrays: it passes through every part of the compiler that usual kernels use.
define void @warm_up(ptr noundef %arguments, i64 noundef %begin, i64 noundef %end) nounwind {
entry:
  %x = load ptr, ptr %arguments, align 8
  %second = getelementptr inbounds i8, ptr %arguments, i64 8
  %y = load ptr, ptr %second, align 8
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %sum = phi float [ 0.0, %entry ], [ %more, %body ]
  %inside = icmp slt i64 %i, %end
  br i1 %inside, label %body, label %exit
body:
  %from = getelementptr inbounds float, ptr %x, i64 %i
  %a = load float, ptr %from, align 4
  %square = fmul contract float %a, %a
  %more = fadd reassoc nsz contract float %sum, %square
  %next = add nuw nsw i64 %i, 1
  br label %head
exit:
  store float %sum, ptr %y, align 4
  ret void
}
