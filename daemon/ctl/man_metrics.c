#include "daemon/ctl/man_pages.h"
#include "daemon/ctl/mdoc.h"
#include "shm/board.h"

#include <string.h>

static void write_metrics(FILE *out, const char *title, const struct rm_metric *metrics,
                          size_t count)
{
    rm_mdoc_line(out, ".Ss %s", title);
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (size_t i = 0; i < count; i++) {
        char text[64];
        rm_mdoc_line(out, ".It Cm %s", metrics[i].name);
        snprintf(text, sizeof text, "(%s%s%s)",
                 metrics[i].kind == RM_METRIC_COUNTER ? "counter" : "gauge",
                 strcmp(metrics[i].unit, "1") ? ", " : "",
                 strcmp(metrics[i].unit, "1") ? metrics[i].unit : "");
        rm_mdoc_text(out, text);
        rm_mdoc_line(out, ".br");
        rm_mdoc_text(out, metrics[i].doc);
    }
    rm_mdoc_line(out, ".El");
}

void rm_man_metrics(FILE *out)
{
    rm_mdoc_head(out, "ringmaster-metrics", "7", "counters and gauges of an experiment");
    rm_mdoc_line(out, ".Sh DESCRIPTION");
    rm_mdoc_text(out, "These numbers are in the metric files of a run directory and in the output "
                      "of `ringctl metrics`, by the same names. A counter only grows; a gauge is "
                      "the latest value.");
    write_metrics(out, "Per policy", rm_policy_metrics, rm_policy_metric_count);
    write_metrics(out, "Per worker", rm_worker_metrics, rm_worker_metric_count);
    rm_mdoc_line(out, ".Sh SEE ALSO");
    rm_mdoc_line(out, ".Xr ringctl 1 ,");
    rm_mdoc_line(out, ".Xr ringmasterd 8");
}
