/* What a change of phase costs a duty.
 *
 * phase.enter   with no trace.
 * trace.mark    the same while `ringctl trace` follows, which writes a mark to shared memory.
 *     Baseline: phase.enter. */
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/duty.h"

#include <stdbool.h>

enum { RUNS = 9, CHANGES = 1000000 };

static double change_ns(struct rm_phase_clock *clock)
{
    const uint64_t start = rm_now_ns();
    for (int i = 0; i < CHANGES; i++)
        rm_phase_enter(clock, i % 2 ? RM_PHASE_FORWARD : RM_PHASE_BACKWARD);
    return (double)(rm_now_ns() - start) / CHANGES;
}

int main(int argc, char **argv)
{
    const bool bare = rm_bench_wanted(argc, argv, "phase.enter");
    const bool traced = rm_bench_wanted(argc, argv, "trace.mark");
    static struct rm_board_worker slot;
    struct rm_phase_clock clock = {0};
    double without[RUNS], with[RUNS];
    if (!bare && !traced)
        return 0;
    rm_bench_pin(0);
    rm_phase_start(&clock, &slot);
    for (int r = 0; r < RUNS; r++) {
        slot.trace_until_ns = 0;
        without[r] = change_ns(&clock);
        slot.trace_until_ns = UINT64_MAX;
        with[r] = change_ns(&clock);
    }
    if (bare)
        rm_bench_report(&(struct rm_bench_result){
            .name = "phase.enter", .unit = "ns", .values = without, .runs = RUNS});
    if (traced)
        rm_bench_report(&(struct rm_bench_result){.name = "trace.mark",
                                                  .unit = "ns",
                                                  .values = with,
                                                  .runs = RUNS,
                                                  .baseline = rm_bench_median(without, RUNS),
                                                  .note = "x no trace"});
    return 0;
}
