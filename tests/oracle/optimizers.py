"""optimizers.py DIRECTORY: what dump_optimizers wrote, against torch.optim and torch.optim.lr_scheduler.

Relative L2 of the weights after 200 steps: at most 1e-5, as of a thousand steps of parity.py at most 1e-4.
Muon is there from PyTorch 2.9 on and orthogonalises in bfloat16: at most 2 % of the way that the weights
went."""

import json
import pathlib
import sys
import warnings

import numpy
import torch


def optimizer_of(about, tensors):
    """Parameters that take steps together, as PyTorch's groups."""
    rate, betas, eps = about["learning_rate"], (about["beta1"], about["beta2"]), about["epsilon"]
    matrices = [t for t, matrix in tensors if matrix]
    others = [t for t, matrix in tensors if not matrix]
    every = [t for t, _ in tensors]
    decay = about["weight_decay"]
    if about["optimizer"] == "adam":
        return [torch.optim.Adam(every, rate, betas, eps)]
    if about["optimizer"] == "adamw":
        groups = [{"params": matrices, "weight_decay": decay}, {"params": others, "weight_decay": decay if about["decay_all"] else 0.0}]
        return [torch.optim.AdamW(groups, rate, betas, eps)]
    if about["optimizer"] == "rmsprop":
        return [torch.optim.RMSprop(every, rate, about["beta2"], eps, momentum=about["momentum"])]
    if not hasattr(torch.optim, "Muon"):
        return None
    muon = torch.optim.Muon(matrices, rate, weight_decay=decay, momentum=about["momentum"], nesterov=True,
                            adjust_lr_fn="match_rms_adamw")
    return [muon, torch.optim.Adam(others, rate, betas, eps)]


def schedule_of(about, optimizer):
    """The falling part and, before it, the warm-up."""
    lr, span, warmup, end = torch.optim.lr_scheduler, about["span"], about["warmup"], about["end"]
    if about["schedule"] == "linear":
        fall = lr.LinearLR(optimizer, 1.0, end, span)
    elif about["schedule"] == "cosine":
        fall = lr.CosineAnnealingLR(optimizer, span, about["learning_rate"] * end)
    else:
        fall = lr.LambdaLR(optimizer, lambda _: 1.0)
    if not warmup:
        return fall
    rise = lr.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1)
    return lr.SequentialLR(optimizer, [rise, fall], [warmup])


def check(path):
    about = json.loads(path.read_text())
    flat = torch.from_numpy(numpy.fromfile(path.with_suffix(".f32"), numpy.float32)).split(about["count"])
    first, gradients, last = flat[0], flat[1:-1], flat[-1].double()
    places = [(at, (rows, columns) if columns else (rows,), matrix)
              for rows, columns, at, matrix in about["tensors"]]
    sizes = [numpy.prod(shape) for _, shape, _ in places]
    tensors = [(first[at : at + n].reshape(shape).clone().requires_grad_(), matrix)
               for (at, shape, matrix), n in zip(places, sizes)]
    optimizers = optimizer_of(about, tensors)
    if optimizers is None:
        print(f"  {path.stem:20} skipped: PyTorch {torch.__version__} has none")
        return True
    schedules = [schedule_of(about, o) for o in optimizers]
    for gradient in gradients:
        for (t, _), (at, shape, _), n in zip(tensors, places, sizes):
            t.grad = gradient[at : at + n].reshape(shape).clone()
        if about["grad_clip"]:
            torch.nn.utils.clip_grad_norm_([t for t, _ in tensors], about["grad_clip"])
        for o, s in zip(optimizers, schedules):
            o.step()
            if s.last_epoch < about["warmup"] + about["span"] or about["schedule"] == "constant":
                s.step()  # PyTorch's cosine rises again behind its end
    theirs = torch.cat([t.detach().reshape(-1) for t, _ in tensors]).double()
    start = torch.cat([first[at : at + n] for (at, _, _), n in zip(places, sizes)]).double()
    ours = torch.cat([last[at : at + n] for (at, _, _), n in zip(places, sizes)])
    muon = about["optimizer"] == "muon"
    apart = ((ours - theirs).norm() / ((theirs - start) if muon else theirs).norm()).item()
    moved = ((theirs - start).norm() / start.norm()).item()
    allowed = 2e-2 if muon else 1e-5
    print(f"  {path.stem:20} moved {moved:8.3g}, apart {apart:8.2g} of {allowed:8.2g}: "
          f"{'ok' if apart <= allowed else 'FAILED'}")
    return apart <= allowed and moved > 0.1


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    paths = sorted(pathlib.Path(sys.argv[1]).glob("*.json"))
    print(f"PyTorch {torch.__version__}, {len(paths)} optimizers")
    passed = sum([check(path) for path in paths])
    print(f"{passed} passed, {len(paths) - passed} failed")
    return 0 if paths and passed == len(paths) else 1


sys.exit(main())
