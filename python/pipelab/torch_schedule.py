"""Schedules as torch.distributed.pipelining runs them."""
import os
import tempfile

from pipelab import _core


def check(schedule):
    """Error for what PyTorch's runtime cannot do."""
    if len(schedule.stage_devices) > 1:
        raise _core.Error(
            f"to_torch: {schedule.name} has {len(schedule.stage_devices)} copies of each stage, "
            "and PyTorch's runtime has one")
    kinds = {cell.lstrip("0123456789")[0] for row in schedule.csv().splitlines()
             for cell in row.split(",") if cell}
    if "R" in kinds:
        raise _core.Error(
            f"to_torch: {schedule.name} recomputes, which PyTorch does in its modules "
            "(torch.utils.checkpoint)")


def stage_indices(schedule, rank):
    """The stages that a rank holds."""
    check(schedule)
    devices = [group[0] for group in schedule.stage_devices[0]]
    return [stage for stage, device in enumerate(devices) if device == rank]


def runtime(schedule, stages, **options):
    """A `_PipelineScheduleRuntime` that runs the schedule: its step() trains one batch.

    `stages`: this rank's torch.distributed.pipelining.PipelineStage objects, those of
    `stage_indices(schedule, rank)`; rank d is the schedule's device d. `options` are the class's own, such
    as loss_fn and scale_grads. The class is PyTorch's, of 2.6 or later, and private there: it has the one
    entry for schedules from outside, a CSV file.
    """
    check(schedule)
    stages = list(stages)
    if not stages:
        raise _core.UsageError("to_torch: stages: is empty; give this rank's PipelineStage objects")
    try:
        from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    except ImportError:
        raise _core.Error(
            "to_torch: torch.distributed.pipelining is not installed (pip install torch)") from None
    given = sorted(stage.stage_index for stage in stages)
    wanted = stage_indices(schedule, stages[0].group_rank)
    if given != wanted:
        raise _core.UsageError(
            f"to_torch: stages: rank {stages[0].group_rank} has stages "
            f"{', '.join(map(str, wanted))} in {schedule.name}, not {', '.join(map(str, given))}")
    made = _PipelineScheduleRuntime(stages, n_microbatches=schedule.micro_batches, **options)
    with tempfile.TemporaryDirectory(prefix="pipelab-") as folder:
        path = os.path.join(folder, "schedule.csv")
        schedule.save(path)
        made._load_csv(path)
    return made
