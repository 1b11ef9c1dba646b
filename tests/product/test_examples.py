"""The programs of `examples/`: each against numpy, an exact solution, or what physics conserves."""

import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from example_programs import EXAMPLES, fresh, numpy_step

import octants as oc

pytestmark = pytest.mark.usefixtures("examples_on_path")

# --- the material point method -------------------------------------------------------------------------------------


def moving_particles(rng, count, spin=4.0):
    """Positions in the middle of the unit square, velocities of a turning, drifting, noisy cloud, and gradients."""
    x = 0.4 + 0.2 * rng.random((count, 2))
    v = spin * (x - 0.5)[:, ::-1] * [-1, 1] + [0.5, -0.3] + 0.1 * rng.standard_normal((count, 2))
    return x.astype(np.float32), v.astype(np.float32), rng.standard_normal((count, 2, 2)).astype(np.float32)


def test_a_step_of_mpm88_is_numpys(arch):
    mpm88 = fresh("mpm88")
    rng = np.random.default_rng(1)
    x, v, gradient = moving_particles(rng, 400)
    expansion = (1 + 0.05 * rng.standard_normal(400)).astype(np.float32)
    liquid = mpm88.Liquid(x, cells=32, gravity=0.0)
    liquid.velocity.from_numpy(v)
    liquid.gradient.from_numpy(gradient)
    liquid.expansion.from_numpy(expansion)
    liquid.step()
    pressure = mpm88.STIFFNESS * (1.0 - expansion.astype(np.float64))
    push = 4 * liquid.time_step * liquid.particle_volume * 32**2 * pressure[:, None, None] * np.eye(2)
    new_x, new_v, new_gradient = numpy_step(
        *(a.astype(np.float64) for a in (x, v, gradient)), push, liquid.particle_mass, 32, liquid.time_step
    )
    new_expansion = expansion * (1 + liquid.time_step * np.trace(new_gradient, axis1=1, axis2=2))
    np.testing.assert_allclose(liquid.position.to_numpy(), new_x, atol=1e-6)
    np.testing.assert_allclose(liquid.velocity.to_numpy(), new_v, atol=2e-5)
    np.testing.assert_allclose(liquid.gradient.to_numpy(), new_gradient, atol=2e-3)
    np.testing.assert_allclose(liquid.expansion.to_numpy(), new_expansion, rtol=1e-5)


def numpy_stress(mpm99, deformation, packing, material):
    """What water, jelly and snow answer to a deformation: the deformation after yielding, packing, stress."""
    u, s, vt = np.linalg.svd(deformation)
    hardness = {mpm99.WATER: 1.0, mpm99.JELLY: mpm99.JELLY_SOFTNESS}.get(material)
    if material == mpm99.SNOW:
        hardness = min(np.exp(10 * (1 - packing)), 6.0)
        yielded = np.clip(s, mpm99.SNOW_SQUEEZE, mpm99.SNOW_STRETCH)
        packing, s = packing * np.prod(s / yielded), yielded
        deformation = u @ np.diag(s) @ vt
    shear, bulk, volume = mpm99.SHEAR * hardness, mpm99.BULK * hardness, np.prod(s)
    if material == mpm99.WATER:
        shear, deformation = 0.0, np.sqrt(volume) * np.eye(2)
    stress = 2 * shear * (deformation - u @ vt) @ deformation.T + bulk * volume * (volume - 1) * np.eye(2)
    return deformation, packing, stress


def test_a_step_of_three_materials_is_numpys(arch):
    mpm99 = fresh("mpm99")
    rng = np.random.default_rng(2)
    x, v, gradient = moving_particles(rng, 300)
    material = np.arange(300) % 3
    deformation = (np.eye(2) + 0.04 * rng.standard_normal((300, 2, 2))).astype(np.float32)
    packing = (1 + 0.02 * rng.standard_normal(300)).astype(np.float32)
    mixture = mpm99.Mixture(x, material, cells=32, gravity=0.0)
    mixture.particles.velocity.from_numpy(v)
    mixture.particles.gradient.from_numpy(gradient)
    mixture.particles.deformation.from_numpy(deformation)
    mixture.particles.packing.from_numpy(packing)
    mixture.step()
    moved = deformation + mixture.time_step * gradient.astype(np.float64) @ deformation
    answers = [numpy_stress(mpm99, *entry) for entry in zip(moved, packing.astype(np.float64), material)]
    push = -4 * mixture.time_step * mixture.particle_volume * 32**2 * np.stack([stress for _, _, stress in answers])
    new_x, new_v, new_gradient = numpy_step(
        *(a.astype(np.float64) for a in (x, v, gradient)), push, mixture.particle_mass, 32, mixture.time_step
    )
    got = mixture.particles.to_numpy()
    np.testing.assert_allclose(got["deformation"], np.stack([d for d, _, _ in answers]), atol=2e-5)
    np.testing.assert_allclose(got["packing"], [p for _, p, _ in answers], rtol=2e-5)
    np.testing.assert_allclose(got["position"], new_x, atol=1e-6)
    np.testing.assert_allclose(got["velocity"], new_v, atol=1e-4)
    np.testing.assert_allclose(got["gradient"], new_gradient, atol=1e-2)


def motion(x, v, gradient, cells):
    """Mean velocity, and mean angular momentum with the particles' own spin, for equal masses."""
    x, v, gradient = (a.astype(np.float64) for a in (x, v, gradient))
    orbital = x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]
    spin = (gradient[:, 1, 0] - gradient[:, 0, 1]) / (4 * cells**2)
    return np.array([*v.mean(axis=0), (orbital + spin).mean()])


@pytest.mark.parametrize("name", ["mpm88", "mpm99"])
def test_particles_keep_mass_and_momentum_until_they_meet_a_wall(name):
    program = fresh(name)
    cells, steps, gravity = 32, 50, 9.8
    x, v, gradient = moving_particles(np.random.default_rng(3), 500)
    for g in (0.0, gravity):
        if name == "mpm88":
            simulation = program.Liquid(x, cells, g)
            particles = {key: getattr(simulation, key) for key in ("position", "velocity", "gradient")}
        else:
            simulation = program.Mixture(x, np.arange(500) % 3, cells, g)
            particles = {key: getattr(simulation.particles, key) for key in ("position", "velocity", "gradient")}
        particles["velocity"].from_numpy(v)
        particles["gradient"].from_numpy(gradient)
        before = motion(x, v, gradient, cells)
        for _ in range(steps):
            simulation.step()
        after = motion(*(field.to_numpy() for field in particles.values()), cells)
        fallen = steps * simulation.time_step * g
        np.testing.assert_allclose(after[:2], before[:2] - [0, fallen], atol=2e-5)
        if g == 0.0:
            np.testing.assert_allclose(after[2], before[2], atol=2e-5)
        total = simulation.grid_mass.to_numpy().sum(dtype=np.float64)
        np.testing.assert_allclose(total, 500 * simulation.particle_mass, rtol=1e-5)


# --- shallow water ---------------------------------------------------------------------------------------------------


def test_a_standing_wave_returns_after_its_period():
    shallow_water = fresh("shallow_water")
    cells, depth, width = 128, 2.0, 100.0
    x = (np.arange(cells) + 0.5) / cells
    crest = 0.01 * np.cos(np.pi * x)
    sea = shallow_water.Sea(np.full((4, cells), -depth), np.tile(crest, (4, 1)), width)
    period = 2 * width / np.sqrt(shallow_water.GRAVITY * depth)
    half = round(0.5 * period / sea.time_step)
    for sign in (-1, 1):
        for _ in range(half):
            sea.step()
        surface = sea.depth.to_numpy() - depth
        np.testing.assert_allclose(surface, np.tile(sign * crest, (4, 1)), atol=0.03 * 0.01)
    assert np.abs(sea.down.to_numpy()).max() < 1e-4  # it is a wave along one axis


def test_water_is_kept_loses_energy_and_never_turns_negative():
    shallow_water = fresh("shallow_water")
    bed = shallow_water.archipelago(48)
    level = np.where(bed < 0, 0.0, -1e3)
    level[:, :8] += 1.5
    sea = shallow_water.Sea(bed, np.maximum(level, bed), width=96.0)
    assert (sea.depth.to_numpy() == 0).any(), "the islands are dry"
    volume = sea.depth.to_numpy().sum(dtype=np.float64)
    energies = [sea.energy()]
    for _ in range(10):
        for _ in range(20):
            sea.step()
        energies.append(sea.energy())
        depth = sea.depth.to_numpy()
        assert depth.min() >= 0.0
        assert depth.sum(dtype=np.float64) == pytest.approx(volume, rel=1e-6)
    moved = np.diff(energies)
    assert (moved <= 1e-4 * (energies[0] - energies[-1])).all()
    assert moved.sum() < 0


def test_a_lake_at_rest_stays_at_rest():
    shallow_water = fresh("shallow_water")
    bed = shallow_water.archipelago(32)
    sea = shallow_water.Sea(bed, np.zeros_like(bed), width=64.0)
    for _ in range(50):
        sea.step()
    assert np.abs(sea.down.to_numpy()).max() < 1e-4
    assert np.abs(sea.right.to_numpy()).max() < 1e-4


# --- Poisson's equation ------------------------------------------------------------------------------------------------


def test_conjugate_gradients_find_the_exact_solution_in_few_iterations():
    poisson = fresh("poisson")
    iterations = []
    for nodes in (31, 127):
        solver = poisson.Poisson(nodes)
        x = np.arange(1, nodes + 1) / (nodes + 1)
        mode = np.outer(np.sin(np.pi * x), np.sin(3 * np.pi * x))
        ramp = np.outer(x * (1 - x), x**2 * (1 - x))
        # Modes are eigenvectors of the discrete operator; of the cubic it is the exact second difference.
        eigenvalue = sum(4 * (nodes + 1) ** 2 * np.sin(k * np.pi / 2 / (nodes + 1)) ** 2 for k in (1, 3))
        source = eigenvalue * mode + np.outer(np.full(nodes, 2.0), x**2 * (1 - x)) + np.outer(x * (1 - x), 6 * x - 2)
        history = solver.solve(source, tolerance=1e-11)
        np.testing.assert_allclose(solver.potential(), mode + ramp, atol=1e-9)
        iterations.append(len(history) - 1)
    assert max(iterations) <= 8
    assert iterations[1] - iterations[0] <= 1, "the number of iterations does not grow with the grid"


def test_a_v_cycle_reduces_any_residual():
    poisson = fresh("poisson")
    solver = poisson.Poisson(63)
    solver.set_source(np.random.default_rng(5).standard_normal((63, 63)))
    size = solver.residual_norm()
    for _ in range(5):
        solver.v_cycle()
        poisson.add_scaled(solver.solution, 1.0, solver.correction[0])
        poisson.apply(solver.correction[0], solver.applied)
        poisson.add_scaled(solver.residual[0], -1.0, solver.applied)
        size, before = solver.residual_norm(), size
        assert size < 0.15 * before


def test_the_preconditioner_is_symmetric(arch):
    poisson = fresh("poisson")
    solver = poisson.Poisson(15)
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((15, 15)) for _ in range(2))

    def preconditioned(r):
        solver.residual[0].from_numpy(np.pad(r, 1))
        solver.v_cycle()
        return solver.correction[0].to_numpy()[1:-1, 1:-1]

    assert (preconditioned(a) * b).sum() == pytest.approx((a * preconditioned(b)).sum(), rel=1e-12)


def test_a_number_of_nodes_that_cannot_be_halved_is_refused():
    with pytest.raises(ValueError, match="power of two"):
        fresh("poisson").Poisson(100)


# --- life --------------------------------------------------------------------------------------------------------------


def test_life_is_numpys_on_a_random_board(arch):
    life = fresh("game_of_life")
    life.make_board(32, 48)
    cells = np.random.default_rng(7).random((32, 48)) < 0.4
    life.set_board(cells)
    for _ in range(12):
        life.generation()
        near = sum(np.roll(cells, (i, j), (0, 1)).astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1)) - cells
        cells = (near == 3) | (cells & (near == 2))
        np.testing.assert_array_equal(life.alive.to_numpy(), cells)
        np.testing.assert_array_equal(life.age.to_numpy() > 0, cells)


def test_a_glider_goes_round_the_board():
    life = fresh("game_of_life")
    life.make_board(16, 16)
    cells = np.zeros((16, 16), bool)
    cells[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = True
    life.set_board(cells)
    for quarter in range(16):
        np.testing.assert_array_equal(life.alive.to_numpy(), np.roll(cells, (quarter, quarter), (0, 1)))
        for _ in range(4):
            life.generation()
    np.testing.assert_array_equal(life.alive.to_numpy(), cells)


# --- cloth -------------------------------------------------------------------------------------------------------------


def test_a_hanging_cloth_loses_energy_and_its_threads_hold():
    program = fresh("cloth")
    cloth = program.Cloth(12, side=1.0, height=0.0)
    for corner in ((0, 0), (0, 11)):
        cloth.point[corner].free = 0.0
    corner = cloth.point[0, 0].position
    energies = [cloth.energy()]
    for _ in range(20):
        for _ in range(100):
            cloth.step()
        energies.append(cloth.energy())
        assert cloth.stretch() < 1.6
    assert (np.diff(energies) < 1e-3 * abs(energies[0] - energies[-1])).all()
    np.testing.assert_array_equal(np.array(cloth.point[0, 0].position), np.array(corner))
    height = cloth.point.position.to_numpy()[..., 1]
    assert height[-1].max() < -0.5, "the free end hangs below the pinned one"


def test_a_falling_cloth_follows_gravity_and_the_drag_of_the_air():
    program = fresh("cloth")
    cloth = program.Cloth(8, side=1.0, height=5.0)
    steps = 200
    for _ in range(steps):
        cloth.step()
    dt, speed, fallen = cloth.time_step, 0.0, 0.0
    for _ in range(steps):
        speed += dt * (program.GRAVITY - cloth.drag * speed)
        fallen += dt * speed
    position, velocity = cloth.point.position.to_numpy(), cloth.point.velocity.to_numpy()
    np.testing.assert_allclose(position[..., 1], 5.0 - fallen, rtol=1e-4)
    np.testing.assert_allclose(velocity[..., 1], -speed, rtol=1e-3)


def test_cloth_stays_outside_the_ball_and_above_the_floor():
    program = fresh("cloth")
    cloth = program.over_a_ball(20)
    for _ in range(1500):
        cloth.step()
    position = cloth.point.position.to_numpy().astype(np.float64)
    ball = np.array(cloth.ball[None], dtype=np.float64)
    distance = np.linalg.norm(position - ball[:3], axis=-1)
    assert distance.min() > 0.98 * ball[3]
    assert distance.min() < 1.05 * ball[3], "it lies on the ball"
    assert position[..., 1].min() >= 0.0


# --- gradients -----------------------------------------------------------------------------------------------------------


def slope(value, at, step):
    """The derivative of ``value`` by each number of ``at``, by central differences."""
    steps = step * np.eye(len(at))
    return np.array([(value(at + one) - value(at - one)) / (2 * step) for one in steps])


def test_billiards_are_numpys_and_every_ball_finds_its_target():
    program = fresh("billiards")
    game = program.table(32)
    game.roll()
    shots = game.shot.to_numpy()
    for ball in range(4):
        np.testing.assert_allclose(game.rest.to_numpy()[ball], game.path(shots, ball)[-1], atol=1e-4)
    assert len(set(game.steps.to_numpy())) > 8, "each ball rolls for a time of its own"
    missed = np.array([game.aim(0.04) for _ in range(80)])
    assert np.median(missed[0]) > 0.3 and np.median(missed[-1]) < 1e-4 and missed[-1].max() < 0.05


def test_a_jelly_is_thrown_along_the_gradient():
    program = fresh("throw_jelly")
    body = program.jelly(16)
    start = body.throw.to_numpy()
    _, gradient = body.gradient(150)

    def value(throw):
        body.throw.from_numpy(throw.astype(np.float32))
        return body.gradient(150)[0]

    np.testing.assert_allclose(gradient, slope(value, start, 2e-2), rtol=0.05, atol=1e-3)
    body.throw.from_numpy(start)
    losses = []
    for _ in range(6):
        loss, gradient = body.gradient(150)
        losses.append(loss)
        body.throw.from_numpy(body.throw.to_numpy() - 2.0 * gradient)
    assert losses[-1] < 0.2 * losses[0]


def test_springs_are_found_from_how_they_hang():
    program = fresh("springs")
    chain, lengths = program.chain(8, 150)

    def value(rest):
        chain.rest.from_numpy(rest)
        chain.loss[None] = 0
        chain.settle(150)
        chain.measure()
        return chain.loss[None]

    equal = np.full(7, 1 / 7)
    expected = slope(value, equal, 1e-6)
    chain.rest.from_numpy(equal)
    losses = [chain.learn(150)]
    np.testing.assert_allclose(chain.rest.grad.to_numpy(), expected, rtol=1e-5, atol=1e-9)
    losses += [chain.learn(150) for _ in range(40)]
    assert losses[-1] < 0.1 * losses[0]
    assert abs(chain.rest.to_numpy() - lengths).max() < 0.7 * abs(equal - lengths).max()


def test_heat_of_sparse_rows_goes_back_by_the_transposed_matrix():
    program = fresh("inverse_heat")
    problem = program.Inverse(60, 4)
    points, first, column, weight = program.net(60)
    matrix = np.zeros((60, 60))
    for i in range(60):
        matrix[i, column[first[i] : first[i + 1]]] = weight[first[i] : first[i + 1]]
    start = np.random.default_rng(8).random(60)
    power = np.linalg.matrix_power(matrix, 4)
    loss, gradient = problem.gradient(start)
    apart = np.where(np.arange(60) % 2 == 0, power @ (start - problem.truth), 0.0)
    assert loss == pytest.approx((apart**2).sum(), rel=1e-10)
    np.testing.assert_allclose(gradient, 2 * power.T @ apart, rtol=1e-8, atol=1e-12)
    _, losses = program.solve(problem, range(100))
    assert losses[-1] < 1e-3 * losses[0]


def test_a_controller_learns_through_network_and_simulation():
    torch = pytest.importorskip("torch")
    program = fresh("learned_controller")
    device = "cuda" if oc.cfg.arch is oc.cuda else "cpu"
    torch.manual_seed(0)
    controller = program.Controller().to(device)
    losses = program.train(controller, range(40), 40, 16, device)
    assert np.mean(losses[-5:]) < 0.6 * losses[0]


# --- all of them ------------------------------------------------------------------------------------------------------


def small_steps(name):
    """A small simulation of a program, and a function that moves it on and draws it."""
    program = fresh(name)
    image = np.zeros((32, 32, 3), np.uint8)
    if name in ("mpm88", "mpm99"):
        simulation = (
            program.Liquid(program.dam_and_drop(24), 24)
            if name == "mpm88"
            else program.Mixture(*program.three_blocks(24), 24)
        )
        positions = simulation.position if name == "mpm88" else simulation.particles.position
        colours = oc.Vector.field(3, oc.f32, shape=positions.shape)
        picture = fresh("pictures").ParticlePicture(32, reach=2.5, background=("#000000", "#ffffff"))
        return lambda: (simulation.step(), simulation.colour(colours), picture.draw(positions, colours, 10.0))
    if name == "billiards":
        game = program.table(4)
        return lambda: game.aim(0.01)
    if name == "throw_jelly":
        body = program.jelly(16)
        return lambda: body.gradient(10)
    if name == "springs":
        chain, _ = program.chain(8, 10)
        return lambda: chain.learn(10)
    if name == "inverse_heat":
        problem = program.Inverse(30, 3)
        return lambda: problem.gradient(problem.truth)
    if name == "shallow_water":
        bed = program.archipelago(24)
        sea = program.Sea(bed, np.where(bed < 0, 1.0, 0.0), width=24.0)
        return lambda: (sea.step(), sea.energy(), sea.draw(image))
    if name == "poisson":
        solver = program.Poisson(15)
        return lambda: (solver.solve(program.charges(15, 0.1)), program.draw(solver.solution, image, 0.3))
    if name == "game_of_life":
        program.make_board(32, 32)
        program.set_board(program.kaleidoscope(32))
        return lambda: (program.generation(), program.draw(np.zeros((160, 160, 3), np.uint8)))
    cloth = program.over_a_ball(12)
    stage = fresh("rendering").Stage(12, 32, 24, ball=(0.0, 0.5, 0.0, 0.5))
    return lambda: (cloth.step(), cloth.energy(), cloth.stretch(), stage.draw(cloth.point.position))


@pytest.mark.parametrize(
    "name",
    [
        "mpm88",
        "mpm99",
        "shallow_water",
        "poisson",
        "game_of_life",
        "cloth",
        "billiards",
        "throw_jelly",
        "springs",
        "inverse_heat",
    ],
)
def test_no_program_reaches_outside_its_fields(name):
    oc.init(arch=oc.cfg.arch, debug=True, log_level="error")
    move = small_steps(name)
    for _ in range(3):
        move()


# --- the programs ----------------------------------------------------------------------------------------------------


PROGRAMS = {
    "mpm88": ("--steps", "3", "--size", "32"),
    "mpm99": ("--steps", "3", "--size", "32"),
    "shallow_water": ("--steps", "3", "--size", "32"),
    "poisson": ("--size", "31"),
    "game_of_life": ("--steps", "2", "--size", "32"),
    "cloth": ("--steps", "3", "--size", "16"),
}


PLOTS = {
    "billiards": ("--size", "4"),
    "throw_jelly": ("--steps", "20", "--size", "16"),
    "springs": ("--steps", "20", "--size", "8"),
    "inverse_heat": ("--steps", "3", "--size", "30"),
    "learned_controller": ("--steps", "5", "--size", "4"),
}


@pytest.mark.parametrize("name", PLOTS)
def test_a_program_writes_its_plots(name, tmp_path, fresh_session):
    if name == "learned_controller":
        pytest.importorskip("torch")
    options = ["--iterations", "2", "--out", str(tmp_path), "--arch", fresh_session, *PLOTS[name]]
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    picture = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
    curves = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert any(len(curve.attrib["points"].split()) == 2 for curve in curves), "the loss of two iterations"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_writes_its_film(name, tmp_path, fresh_session):
    options = ["--frames", "2", "--out", str(tmp_path), "--arch", fresh_session, *PROGRAMS[name]]
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    film = (tmp_path / f"{name}.png").read_bytes()
    assert film.startswith(b"\x89PNG\r\n\x1a\n")
    control = film.index(b"acTL") + 4
    assert struct.unpack(">I", film[control : control + 4]) == (2,), "two frames"
    assert "\r" not in done.stdout, "the bar moves on a terminal only"


def test_a_particle_picture_shows_bodies_where_particles_are():
    pictures = fresh("pictures")
    picture = pictures.ParticlePicture(64, reach=4.0, background=("#000000", "#000000"))
    positions, colours = (oc.Vector.field(n, oc.f32, shape=256) for n in (2, 3))
    at = 0.25 + 0.25 * (np.arange(16) + 0.5) / 16
    positions.from_numpy(np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(256, 2).astype(np.float32))
    colours.fill(1.0)
    image = picture.draw(positions, colours, full=16.8)
    assert (image[40:44, 20:28] > 200).all(), "the lower left of the middle, rows counted from the top"
    assert (image[:24] == 0).all() and (image[:, 44:] == 0).all()
