/* view: writes replies as tables for people. The functions only read JSON and write to a stream. */
#ifndef RM_DAEMON_CTL_VIEW_H
#define RM_DAEMON_CTL_VIEW_H

#include "daemon/ctl/snapshot.h"
#include "daemon/table.h"

void rm_view_status(FILE *out, const struct rm_snapshot *snapshot, const struct rm_style *style);
void rm_view_metrics(FILE *out, const json_t *reply, const struct rm_style *style);
void rm_view_schema(FILE *out, const json_t *reply, const struct rm_style *style);

/* Writes time, name and data of an event on one line, after another line if events were lost. */
void rm_view_event(FILE *out, const json_t *event, const struct rm_style *style);

/* A JSON value on one line, strings without quotes. */
void rm_view_value(FILE *out, const json_t *value);

#endif
