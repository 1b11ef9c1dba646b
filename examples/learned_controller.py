"""A network learns to swing a pendulum up and to hold it: a simulation in Octants inside of a loss in torch.

    python examples/learned_controller.py [--iterations N] [--steps N] [--size PENDULUMS] [--out DIR] [--arch NAME]

The network of torch's sees angle and speed, and says how hard the pivot is turned. Each step of many pendulums is a kernel that
`oc.ad.torch_function` has made a function of torch's, so that `loss.backward()` goes through network and simulation alike.
"""

import numpy as np
import plots
from command_line import options
from progress import progress

import octants as oc

try:
    import torch
except ImportError as error:
    raise SystemExit("learned_controller.py needs torch") from error

Reals = oc.types.ndarray(dtype=oc.f32, ndim=1)
GRAVITY, LENGTH, TIME_STEP, STRONGEST = 9.8, 1.0, 0.03, 14.0


@oc.kernel
def swing(angle: Reals, speed: Reals, turn: Reals, next_angle: Reals, next_speed: Reals):
    """One step, in five parts; an angle of zero is upright."""
    for i in angle:
        a, s = angle[i], speed[i]
        for _ in range(5):
            s += TIME_STEP / 5 * (GRAVITY / LENGTH * oc.sin(a) + turn[i] - 0.1 * s)
            a += TIME_STEP / 5 * s
        next_angle[i] = a
        next_speed[i] = s


step = oc.ad.torch_function(swing, lambda angle, speed, turn: (torch.empty_like(angle), torch.empty_like(speed)))


class Controller(torch.nn.Module):
    """From angle and speed to a turn."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))

    def forward(self, angle, speed):
        seen = torch.stack([torch.sin(angle), torch.cos(angle), 0.3 * speed], dim=1)
        return STRONGEST * torch.tanh(self.layers(seen)[:, 0])


def rollout(controller: Controller, angle, speed, steps: int):
    """The loss of pendulums over some steps, and their angles."""
    loss, angles = 0.0, []
    for number in range(steps):
        turn = controller(angle, speed)
        angle, speed = step(angle, speed, turn)
        angles.append(angle.detach())
        late = (number + 1) / steps
        loss = loss + late * ((1 - torch.cos(angle)) + 0.02 * speed**2 + 2e-4 * turn**2).mean() / steps
    return loss, torch.stack(angles)


def train(controller: Controller, iterations, steps: int, pendulums: int, device: str) -> list[float]:
    """Pendulums that hang down, more or less, are to come up: a step of Adam's for each of `iterations`."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(controller.parameters(), lr=0.02)
    losses = []
    for _ in iterations:
        angle = (np.pi + 0.6 * torch.randn(pendulums, generator=generator)).to(device)
        loss, _ = rollout(controller, angle, torch.zeros_like(angle), steps)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(controller.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    chosen = options(__doc__, smallest=1, iterations=120, steps=60, size=64)
    device = "cuda" if oc.cfg.arch is oc.cuda else "cpu"
    torch.manual_seed(0)
    controller = Controller().to(device)
    start = torch.linspace(np.pi - 1.0, np.pi + 1.0, 5).to(device)

    def heights():
        with torch.no_grad():
            return np.cos(rollout(controller, start, torch.zeros_like(start), 2 * chosen.steps)[1].cpu().numpy())

    before = heights()
    steps = progress("learning", chosen.iterations, "pendulum steps", chosen.steps * chosen.size)
    losses = train(controller, steps, chosen.steps, chosen.size, device)
    after = heights()
    seconds = TIME_STEP * np.arange(2 * chosen.steps)
    angles = plots.Plot("Height of five pendulums", "seconds", "cosine of the angle")
    angles.curve(before[:, 2], seconds, "before", dashed=True)
    for number in range(5):
        angles.curve(after[:, number], seconds, "after learning" if number == 0 else "")
    loss = plots.Plot("Loss", "step of Adam").curve(losses)
    plots.save(chosen.out / "learned_controller.svg", angles, loss)
    print(
        f"  loss {losses[0]:.3f}, then {np.mean(losses[-5:]):.3f}; at the end heights of {after[-1].round(2).tolist()}"
    )
    print(f"  wrote {chosen.out / 'learned_controller.svg'}")


if __name__ == "__main__":
    main()
