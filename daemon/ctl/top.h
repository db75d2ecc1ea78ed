/* top: the full-screen live view. top.c asks the experiment and reads keys, top_draw.c draws. */
#ifndef RM_DAEMON_CTL_TOP_H
#define RM_DAEMON_CTL_TOP_H

#include "daemon/ctl/curve.h"
#include "daemon/ctl/explain.h"
#include "daemon/ctl/snapshot.h"

#include "shm/base/clock.h"

#include <stdbool.h>

enum rm_top_order {
    RM_TOP_BY_NUMBER = 0, /* in the experiment's order */
    RM_TOP_BY_WORK,       /* least waiting first */
    RM_TOP_BY_MEMORY,
    RM_TOP_BY_DEATHS,
    RM_TOP_ORDER_COUNT
};

struct rm_top {
    struct rm_snapshot *now, *before; /* `before` is about a second older */
    bool have_now, have_before;
    double seconds_between;
    struct rm_curve curve;         /* of the score; empty if the run directory cannot be read */
    char verdict[RM_SENTENCE_MAX]; /* of `ringctl explain`; "": none yet */
    uint64_t explained_ns;         /* when it was asked for; 0: not yet */
    enum rm_top_order order;
    int scroll; /* first worker shown */
    bool help;
    bool ended;        /* the experiment has ended */
    char message[256]; /* the effect of the last key, or an error */
};

const char *rm_top_order_name(enum rm_top_order order);

/* Writes the indices of now's workers, in the chosen order, to index[RM_BOARD_WORKERS]. A stable
 * sort. */
void rm_top_sort(const struct rm_top *top, unsigned *index);

/* Steps per second: reported by the experiment, or from two snapshots; NAN when unknown. */
double rm_top_speed(const struct rm_top *top);

/* The worker of the earlier snapshot with the same name, or NULL. */
const struct rm_snapshot_worker *rm_top_earlier(const struct rm_top *top,
                                                const struct rm_snapshot_worker *worker);

/* Reads the run's verdict, unless it was read within the last RM_TOP_EXPLAIN_NS. */
#define RM_TOP_EXPLAIN_NS (10 * RM_NS_PER_S)
void rm_top_explain(struct rm_top *top, uint64_t now_ns);

/* Divides the `cells` characters of a bar among the phases by their shares (largest remainder), and
 * writes the characters of each phase to count[RM_PHASE_COUNT]. The sum is `cells`, or 0 if no
 * share is above 0. */
void rm_top_split(const double *share, int cells, int *count);

/* One letter per phase, for bars without colour and for the legend. */
char rm_top_phase_letter(int phase);

/* Does terminfo have a description of the terminal on standard output? */
bool rm_top_terminal_known(void);

/* rm_top_colours() sets up colours; rm_top_draw() draws the whole view on stdscr. */
void rm_top_colours(void);
void rm_top_draw(const struct rm_top *top);

#endif
