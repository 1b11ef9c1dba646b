"""Scenes of the Genesis simulator, each a function that builds one and gives how to step it and what to look at.

Everything is seeded and small. Nothing here knows which compiler runs the kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import genesis as gs
import numpy as np
import torch


class Built(NamedTuple):
    """A scene that can be stepped."""

    step: Callable[[int], None]
    #: What is compared: names with arrays.
    probes: Callable[[], dict[str, object]]


def _scene(dt=0.01, substeps=1, gravity=(0.0, 0.0, -9.81), **options):
    return gs.Scene(
        show_viewer=False,
        sim_options=gs.options.SimOptions(dt=dt, substeps=substeps, gravity=gravity, **options.pop("sim", {})),
        **options,
    )


def boxes() -> Built:
    """Boxes that fall into a stack: contacts."""
    scene = _scene()
    scene.add_entity(gs.morphs.Plane())
    stack = [
        scene.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(0.01 * n, 0.0, 0.15 + 0.25 * n))) for n in range(4)
    ]
    scene.build()
    return Built(lambda _: scene.step(), lambda: {f"box{n}": box.get_pos() for n, box in enumerate(stack)})


_FRANKA = "xml/franka_emika_panda/panda.xml"
_REST = [0.0, -0.3, 0.2, -2.0, 0.1, 1.8, 0.7, 0.03, 0.03]
_GAINS = (
    [4500.0, 4500.0, 3500.0, 3500.0, 2000.0, 2000.0, 2000.0, 100.0, 100.0],
    [450.0, 450.0, 350.0, 350.0, 200.0, 200.0, 200.0, 10.0, 10.0],
)


def _franka(scene, **options):
    return scene.add_entity(gs.morphs.MJCF(file=_FRANKA, **options))


def _stiffen(arm) -> None:
    stiffness, damping = _GAINS
    arm.set_dofs_kp(np.array(stiffness))
    arm.set_dofs_kv(np.array(damping))


def franka() -> Built:
    """An arm that is told positions."""
    scene = _scene()
    scene.add_entity(gs.morphs.Plane())
    arm = _franka(scene)
    scene.build()
    _stiffen(arm)
    target = torch.tensor(_REST)

    def step(n: int) -> None:
        if n % 100 == 0:
            arm.control_dofs_position(target * (0.5 if n // 100 % 2 else 1.0))
        scene.step()

    return Built(step, lambda: {"qpos": arm.get_qpos(), "links": arm.get_links_pos()})


def grasp() -> Built:
    """Inverse kinematics to a cube, which the arm then lifts."""
    scene = _scene()
    scene.add_entity(gs.morphs.Plane())
    cube = scene.add_entity(gs.morphs.Box(size=(0.04, 0.04, 0.04), pos=(0.65, 0.0, 0.02)))
    arm = _franka(scene)
    scene.build()
    _stiffen(arm)
    hand = arm.get_link("hand")
    down = np.array([0.0, 1.0, 0.0, 0.0])
    above, at = (
        arm.inverse_kinematics(link=hand, pos=np.array([0.65, 0.0, height]), quat=down, seed=0)
        for height in (0.25, 0.13)
    )
    above[-2:] = at[-2:] = 0.04
    arm.set_qpos(above)

    def step(n: int) -> None:
        if n == 0:
            arm.control_dofs_position(at)
        elif n == 60:
            arm.control_dofs_force(np.array([-1.0, -1.0]), np.arange(7, 9))
        elif n == 100:
            arm.control_dofs_position(above[:-2], np.arange(7))
        scene.step()

    return Built(step, lambda: {"above": above, "at": at, "qpos": arm.get_qpos(), "cube": cube.get_pos()})


def go2() -> Built:
    """A dog that is told to stand."""
    scene = _scene(dt=0.02, substeps=2)
    scene.add_entity(gs.morphs.Plane())
    dog = scene.add_entity(gs.morphs.URDF(file="urdf/go2/urdf/go2.urdf", pos=(0.0, 0.0, 0.42)))
    scene.build()
    legs = np.arange(6, dog.n_dofs)
    dog.set_dofs_kp(np.full(len(legs), 20.0), legs)
    dog.set_dofs_kv(np.full(len(legs), 0.5), legs)
    dog.control_dofs_position(np.array([0.0, 0.0, 0.0, 0.0, 0.8, 0.8, 1.0, 1.0, -1.5, -1.5, -1.5, -1.5]), legs)
    return Built(lambda _: scene.step(), lambda: {"qpos": dog.get_qpos()})


def drone() -> Built:
    """A drone with propellers of unequal speed."""
    scene = _scene()
    scene.add_entity(gs.morphs.Plane())
    drone = scene.add_entity(gs.morphs.Drone(file="urdf/drones/cf2x.urdf", pos=(0.0, 0.0, 0.5)))
    scene.build()

    def step(n: int) -> None:
        drone.set_propellers_rpm([14468.4 * (1.0 + 0.001 * ((n + k) % 4)) for k in range(4)])
        scene.step()

    return Built(step, lambda: {"pos": drone.get_pos(), "quat": drone.get_quat()})


def terrain() -> Built:
    """Balls on a heightfield, an inertial sensor on one of them, and a lidar that looks at all from a pole.

    The lidar stands still: where rays graze the ground, one that rolls is off by a hundred times as much as the ball that carries it.
    """
    scene = _scene()
    rows, columns = np.mgrid[0:20, 0:20]
    heights = (10.0 * np.sin(rows * 0.7) * np.cos(columns * 0.5)).astype(np.float32)
    scene.add_entity(gs.morphs.Terrain(height_field=heights, horizontal_scale=0.25, vertical_scale=0.01))
    balls = [scene.add_entity(gs.morphs.Sphere(radius=0.15, pos=(1.5 + 0.6 * n, 2.0, 0.6))) for n in range(3)]
    pole = scene.add_entity(gs.morphs.Box(size=(0.05, 0.05, 0.05), pos=(2.1, 2.1, 1.0), fixed=True))
    pattern = gs.sensors.SphericalPattern(fov=(360.0, 40.0), n_points=(16, 8))
    lidar = scene.add_sensor(
        gs.sensors.Lidar(pattern=pattern, entity_idx=pole.idx, pos_offset=(0.0, 0.0, 0.1), return_world_frame=True)
    )
    inertial = scene.add_sensor(gs.sensors.IMU(entity_idx=balls[1].idx))
    scene.build()

    def probes() -> dict[str, object]:
        seen = {f"ball{n}": ball.get_pos() for n, ball in enumerate(balls)}
        return seen | {"distances": lidar.read().distances, "gyroscope": inertial.read().ang_vel}

    return Built(lambda _: scene.step(), probes)


def envs16() -> Built:
    """Sixteen arms, each told another position."""
    scene = _scene()
    scene.add_entity(gs.morphs.Plane())
    arm = _franka(scene)
    scene.build(n_envs=16)
    _stiffen(arm)
    arm.control_dofs_position(torch.tensor(_REST)[None] * torch.linspace(0.2, 1.0, 16)[:, None])
    return Built(lambda _: scene.step(), lambda: {"qpos": arm.get_qpos()})


def _add_ground(scene) -> None:
    """A plane below particles, which is a rigid body: on a GPU these are computed with blocks and subgroups, which Octants does not have yet."""
    if gs.backend == gs.cpu:
        scene.add_entity(gs.morphs.Plane())


def mpm() -> Built:
    """An elastic cube and a liquid one, as particles on a grid."""
    scene = _scene(
        dt=4e-3,
        substeps=10,
        mpm_options=gs.options.MPMOptions(lower_bound=(-0.5, -0.5, 0.0), upper_bound=(0.5, 0.5, 1.0), grid_density=32),
    )
    _add_ground(scene)
    solid = scene.add_entity(
        gs.morphs.Box(pos=(0.0, -0.2, 0.3), size=(0.2, 0.2, 0.2)), material=gs.materials.MPM.Elastic()
    )
    liquid = scene.add_entity(
        gs.morphs.Box(pos=(0.0, 0.2, 0.3), size=(0.2, 0.2, 0.2)), material=gs.materials.MPM.Liquid()
    )
    scene.build()
    return Built(lambda _: scene.step(), lambda: {"solid": _mean(solid), "liquid": _mean(liquid)})


def _mean(entity):
    """Where particles are on average: a single one of a fluid is chaotic."""
    return entity.get_particles_pos().detach().reshape(-1, 3).mean(0)


def sph() -> Built:
    """A block of water, as particles that push each other."""
    scene = _scene(
        dt=4e-3,
        substeps=10,
        sph_options=gs.options.SPHOptions(
            lower_bound=(-0.5, -0.5, 0.0), upper_bound=(0.5, 0.5, 1.0), particle_size=0.02
        ),
    )
    _add_ground(scene)
    water = scene.add_entity(
        gs.morphs.Box(pos=(0.0, 0.0, 0.4), size=(0.3, 0.3, 0.3)), material=gs.materials.SPH.Liquid(sampler="regular")
    )
    scene.build()
    return Built(lambda _: scene.step(), lambda: {"water": _mean(water)})


def cloth() -> Built:
    """A cloth that falls, two corners held."""
    scene = _scene(dt=4e-3, substeps=10)
    _add_ground(scene)
    sheet = scene.add_entity(
        gs.morphs.Mesh(file="meshes/cloth.obj", scale=1.0, pos=(0.0, 0.0, 0.5)), material=gs.materials.PBD.Cloth()
    )
    scene.build()
    sheet.fix_particles(sheet.find_closest_particle((-0.5, -0.5, 0.5)))
    sheet.fix_particles(sheet.find_closest_particle((-0.5, 0.5, 0.5)))
    return Built(lambda _: scene.step(), lambda: {"sheet": _mean(sheet)})


def _elastic(implicit: bool) -> Built:
    dt, substeps = (1e-2, 1) if implicit else (5e-4, 5)
    scene = _scene(dt=dt, substeps=substeps, fem_options=gs.options.FEMOptions(use_implicit_solver=implicit))
    body = scene.add_entity(
        gs.morphs.Box(pos=(0.0, 0.0, 0.3), size=(0.2, 0.2, 0.2)),
        material=gs.materials.FEM.Elastic(
            E=1e5, nu=0.4, rho=1000.0, model="stable_neohookean" if not implicit else "linear_corotated"
        ),
    )
    scene.build()
    return Built(lambda _: scene.step(), lambda: {"body": body.get_state().pos.detach()})


def fem_explicit() -> Built:
    """An elastic body, stepped explicitly."""
    return _elastic(False)


def fem_implicit() -> Built:
    """An elastic body, stepped implicitly: a Newton iteration with conjugate gradients."""
    return _elastic(True)


def mpm_grad() -> Built:
    """A ball pushed to a target: a backward pass through the steps, and the gradient of the push."""
    scene = _scene(
        dt=2e-3,
        substeps=5,
        gravity=(0.0, 0.0, 0.0),
        sim={"requires_grad": True},
        mpm_options=gs.options.MPMOptions(lower_bound=(0.0, 0.0, 0.0), upper_bound=(1.0, 1.0, 1.0), grid_density=32),
    )
    ball = scene.add_entity(gs.morphs.Sphere(pos=(0.4, 0.5, 0.5), radius=0.08), material=gs.materials.MPM.Elastic())
    scene.build()
    gradients = []

    def step(_: int) -> None:
        scene.reset()
        push = torch.tensor([1.0, 0.2, 0.0], device=gs.device, requires_grad=True)
        ball.set_velocity(push)
        for _ in range(4):
            scene.step()
        loss = torch.pow(ball.get_state().pos - torch.tensor([0.6, 0.5, 0.5], device=gs.device), 2).sum()
        loss.backward()
        gradients[:] = [push.grad.clone(), loss.detach()]

    return Built(step, lambda: {"gradient": gradients[0], "loss": gradients[1]})


#: What can be run, with how many steps are looked at and how many are timed.
SCENES: dict[str, tuple[Callable[[], Built], int, int]] = {
    "boxes": (boxes, 200, 3000),
    "franka": (franka, 200, 3000),
    "grasp": (grasp, 200, 2000),
    "go2": (go2, 100, 2000),
    "drone": (drone, 100, 2000),
    "terrain": (terrain, 100, 1000),
    "envs16": (envs16, 100, 1000),
    "mpm": (mpm, 20, 100),
    "sph": (sph, 20, 100),
    "cloth": (cloth, 20, 100),
    "fem_explicit": (fem_explicit, 20, 200),
    "fem_implicit": (fem_implicit, 10, 50),
    "mpm_grad": (mpm_grad, 1, 10),
}
