; args: px,py,pz, ax,ay,az (f32 SoA), i64 n ; flags as the emitter writes them
define void @nbody(ptr noundef %args, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %px = load ptr, ptr %args, align 8
  %g1 = getelementptr inbounds i8, ptr %args, i64 8
  %py = load ptr, ptr %g1, align 8
  %g2 = getelementptr inbounds i8, ptr %args, i64 16
  %pz = load ptr, ptr %g2, align 8
  %g3 = getelementptr inbounds i8, ptr %args, i64 24
  %ax = load ptr, ptr %g3, align 8
  %g4 = getelementptr inbounds i8, ptr %args, i64 32
  %ay = load ptr, ptr %g4, align 8
  %g5 = getelementptr inbounds i8, ptr %args, i64 40
  %az = load ptr, ptr %g5, align 8
  %g6 = getelementptr inbounds i8, ptr %args, i64 48
  %n = load i64, ptr %g6, align 8
  br label %outer
outer:
  %i = phi i64 [ %lo, %entry ], [ %i1, %outend ]
  %mi = icmp slt i64 %i, %hi
  br i1 %mi, label %obody, label %exit
obody:
  %q0 = getelementptr inbounds float, ptr %px, i64 %i
  %xi = load float, ptr %q0, align 4, !alias.scope !1, !noalias !2
  %q1 = getelementptr inbounds float, ptr %py, i64 %i
  %yi = load float, ptr %q1, align 4, !alias.scope !1, !noalias !2
  %q2 = getelementptr inbounds float, ptr %pz, i64 %i
  %zi = load float, ptr %q2, align 4, !alias.scope !1, !noalias !2
  br label %inner
inner:
  %j = phi i64 [ 0, %obody ], [ %j1, %ibody ]
  %sx = phi float [ 0.0, %obody ], [ %sx1, %ibody ]
  %sy = phi float [ 0.0, %obody ], [ %sy1, %ibody ]
  %sz = phi float [ 0.0, %obody ], [ %sz1, %ibody ]
  %mj = icmp slt i64 %j, %n
  br i1 %mj, label %ibody, label %outend
ibody:
  %r0 = getelementptr inbounds float, ptr %px, i64 %j
  %xj = load float, ptr %r0, align 4, !alias.scope !1, !noalias !2
  %r1 = getelementptr inbounds float, ptr %py, i64 %j
  %yj = load float, ptr %r1, align 4, !alias.scope !1, !noalias !2
  %r2 = getelementptr inbounds float, ptr %pz, i64 %j
  %zj = load float, ptr %r2, align 4, !alias.scope !1, !noalias !2
  %dx = fsub nsz contract float %xj, %xi
  %dy = fsub nsz contract float %yj, %yi
  %dz = fsub nsz contract float %zj, %zi
  %dx2 = fmul nsz contract float %dx, %dx
  %dy2 = fmul nsz contract float %dy, %dy
  %dz2 = fmul nsz contract float %dz, %dz
  %d0 = fadd nsz contract float %dx2, %dy2
  %d1 = fadd nsz contract float %d0, %dz2
  %d2 = fadd nsz contract float %d1, 0x3F1A36E2E0000000
  %sq = call afn float @llvm.sqrt.f32(float %d2)
  %inv = fdiv afn float 1.0, %sq
  %inv2 = fmul nsz contract float %inv, %inv
  %inv3 = fmul nsz contract float %inv2, %inv
  %fx = fmul nsz contract float %dx, %inv3
  %fy = fmul nsz contract float %dy, %inv3
  %fz = fmul nsz contract float %dz, %inv3
  %sx1 = fadd reassoc nsz contract float %sx, %fx
  %sy1 = fadd reassoc nsz contract float %sy, %fy
  %sz1 = fadd reassoc nsz contract float %sz, %fz
  %j1 = add nuw nsw i64 %j, 1
  br label %inner
outend:
  %w0 = getelementptr inbounds float, ptr %ax, i64 %i
  store float %sx, ptr %w0, align 4, !alias.scope !2, !noalias !1
  %w1 = getelementptr inbounds float, ptr %ay, i64 %i
  store float %sy, ptr %w1, align 4, !alias.scope !2, !noalias !1
  %w2 = getelementptr inbounds float, ptr %az, i64 %i
  store float %sz, ptr %w2, align 4, !alias.scope !2, !noalias !1
  %i1 = add nuw nsw i64 %i, 1
  br label %outer
exit:
  ret void
}
declare float @llvm.sqrt.f32(float)
attributes #0 = { nounwind }
!0 = distinct !{!0}
!1 = !{!3}
!2 = !{!4}
!3 = distinct !{!3, !0}
!4 = distinct !{!4, !0}
