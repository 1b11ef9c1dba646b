"""A kernel with eight shared arrays, to be compiled: a Newton step of a solver of contacts, a block for each scene, as simulators write it."""

# type: ignore  (kernels: annotations are values of the language)

from typing import Any

#: Degrees of freedom, constraints, threads.
FREE, CONSTRAINTS, THREADS = 32, 64, 64
#: Steps of the search along a line.
SEARCHED = 8


def step(qd: Any) -> Any:
    f32, i32, block, subgroup = qd.f32, qd.i32, qd.simt.block, qd.simt.subgroup

    @qd.kernel
    def run(
        jacobians: qd.types.ndarray(dtype=qd.f32, ndim=3),
        masses: qd.types.ndarray(dtype=qd.f32, ndim=3),
        aims: qd.types.ndarray(dtype=qd.f32, ndim=2),
        stiffness: qd.types.ndarray(dtype=qd.f32, ndim=2),
        velocities: qd.types.ndarray(dtype=qd.f32, ndim=2),
        costs: qd.types.ndarray(dtype=qd.f32, ndim=1),
    ):
        qd.loop_config(block_dim=THREADS)
        for i in range(jacobians.shape[0] * THREADS):
            hessian = block.SharedArray((FREE, FREE + 1), f32)
            jacobian = block.SharedArray((CONSTRAINTS, FREE + 1), f32)
            velocity = block.SharedArray((FREE,), f32)
            gradient = block.SharedArray((FREE,), f32)
            direction = block.SharedArray((FREE,), f32)
            residual = block.SharedArray((CONSTRAINTS,), f32)
            moved = block.SharedArray((CONSTRAINTS,), f32)
            active = block.SharedArray((CONSTRAINTS,), i32)
            scene, thread = i // THREADS, i % THREADS
            lane = subgroup.invocation_id()

            # What the scene is.
            for e in range(CONSTRAINTS * FREE // THREADS):
                at = e * THREADS + thread
                jacobian[at // FREE, at % FREE] = jacobians[scene, at // FREE, at % FREE]
            for e in range(FREE * FREE // THREADS):
                at = e * THREADS + thread
                hessian[at // FREE, at % FREE] = masses[scene, at // FREE, at % FREE]
            if thread < FREE:
                velocity[thread] = velocities[scene, thread]
                gradient[thread] = 0.0
            block.sync()

            # Residuals, and which constraints push.
            r = -aims[scene, thread]
            for d in range(FREE):
                r += jacobian[thread, d] * velocity[d]
            residual[thread] = r
            active[thread] = qd.cast(r < 0.0, i32)
            block.sync()

            # The gradient and the Hessian.
            if thread < FREE:
                g = 0.0
                for d in range(FREE):
                    g += hessian[thread, d] * velocity[d]
                for c in range(CONSTRAINTS):
                    if active[c] != 0:
                        g += stiffness[scene, c] * residual[c] * jacobian[c, thread]
                gradient[thread] = g
            block.sync()
            for e in range(FREE * FREE // THREADS):
                at = e * THREADS + thread
                row, column = at // FREE, at % FREE
                h = hessian[row, column]
                for c in range(CONSTRAINTS):
                    if active[c] != 0:
                        h += stiffness[scene, c] * jacobian[c, row] * jacobian[c, column]
                hessian[row, column] = h
            block.sync()

            # Its factor, a column at a time.
            for k in range(FREE):
                if thread == 0:
                    hessian[k, k] = qd.sqrt(qd.max(hessian[k, k], 1e-9))
                block.sync()
                if k < thread and thread < FREE:
                    hessian[thread, k] /= hessian[k, k]
                block.sync()
                for e in range(FREE * FREE // THREADS):
                    at = e * THREADS + thread
                    row, column = at // FREE, at % FREE
                    if column > k and row >= column:
                        hessian[row, column] -= hessian[row, k] * hessian[column, k]
                block.sync()

            # The direction, by two triangular systems on the first subgroup.
            if thread < FREE:
                y = gradient[lane]
                for k in range(FREE):
                    solved = subgroup.shuffle(y, qd.cast(k, qd.u32)) / hessian[k, k]
                    if lane == k:
                        y = solved
                    elif lane > k:
                        y -= hessian[lane, k] * solved
                for back in range(FREE):
                    k = FREE - 1 - back
                    solved = subgroup.shuffle(y, qd.cast(k, qd.u32)) / hessian[k, k]
                    if lane == k:
                        y = solved
                    elif lane < k:
                        y -= hessian[k, lane] * solved
                direction[lane] = -y
            block.sync()
            m = 0.0
            for d in range(FREE):
                m += jacobian[thread, d] * direction[d]
            moved[thread] = m
            block.sync()

            # How far along it.
            best, best_cost = 0.0, 1e30
            for s in range(SEARCHED):
                length = 1.0 / (1 << s)
                there = qd.min(residual[thread] + length * moved[thread], 0.0)
                cost = 0.5 * stiffness[scene, thread] * there * there
                if thread < FREE:
                    v = velocity[thread] + length * direction[thread]
                    inertia = 0.0
                    for d in range(FREE):
                        inertia += masses[scene, thread, d] * (velocity[d] + length * direction[d])
                    cost += 0.5 * v * inertia
                whole = block.reduce_all_add(cost, THREADS, f32)
                if whole < best_cost:
                    best, best_cost = length, whole
            if thread < FREE:
                velocities[scene, thread] = velocity[thread] + best * direction[thread]
            if thread == 0:
                costs[scene] = best_cost

    return run
