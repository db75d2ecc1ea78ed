/* openmetrics: writes the figures of all experiments as metrics. One table lists the metrics;
 * docs/metrics.md is generated from it. Names and units follow OpenMetrics 1.0 and Prometheus's
 * practice: base units, the suffix _total, and labels with few values. The functions read nothing
 * but their arguments, the clocks and the sizes of file systems. */
#ifndef RM_DAEMON_WEB_OPENMETRICS_H
#define RM_DAEMON_WEB_OPENMETRICS_H

#include "daemon/web/gpus.h"
#include "daemon/web/runs.h"

enum rm_exposition {
    RM_OPENMETRICS = 0, /* application/openmetrics-text; version=1.0.0 */
    RM_PLAIN_TEXT,      /* text/plain; version=0.0.4: for clients that do not ask for OpenMetrics */
};

const char *rm_exposition_type(enum rm_exposition form);

/* Writes all metrics of all runs and GPUs. */
void rm_openmetrics_write(const struct rm_web_runs *runs, const struct rm_gpus *gpus,
                          enum rm_exposition form, FILE *out);

/* Writes docs/metrics.md. */
void rm_openmetrics_document(FILE *out);

#endif
