/* record: lists a recording's contents, verifies it, and exports its rows as NumPy files. */
#include "daemon/ctl/command.h"

#include "config/names.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/format.h"
#include "daemon/table.h"
#include "learner/recording.h"
#include "shm/base/file.h"
#include "shm/base/plural.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rows of lanes of a stream, and how many were lost. */
static int count_rows(const struct rm_recording *r, uint32_t stream, uint64_t *rows, uint64_t *lost)
{
    struct rm_recording_span *spans;
    const uint32_t lanes = r->stream[stream].lanes;
    const int64_t n = rm_recording_spans(r, stream, &spans, lost);
    *rows = 0;
    for (int64_t i = 0; i < n; i++)
        *rows += (uint64_t)spans[i].rows * lanes;
    *lost *= lanes;
    free(spans);
    return n < 0 ? (int)n : 0;
}

/* --- ls --------------------------------------------------------------------------------------- */

static json_t *list_json(const struct rm_recording *r)
{
    json_t *streams = json_array();
    for (uint32_t s = 0; s < r->streams; s++) {
        uint64_t rows, lost;
        json_t *columns = json_array();
        if (count_rows(r, s, &rows, &lost) < 0)
            break;
        for (uint32_t c = 0; c < r->stream[s].columns; c++)
            json_array_append_new(columns, json_string(r->stream[s].column[c].name));
        json_array_append_new(streams,
                              json_pack("{s:s, s:i, s:I, s:I, s:o}", "name", r->stream[s].name,
                                        "lanes", (int)r->stream[s].lanes, "rows", (json_int_t)rows,
                                        "lost", (json_int_t)lost, "columns", columns));
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "run", r->run, "world", r->world, "every",
                     rm_record_every_names[r->every], "chunks", (json_int_t)r->chunks, "bytes",
                     (json_int_t)r->bytes, "streams", streams);
}

static int list(const struct rm_ctl_arguments *given, struct rm_recording *r)
{
    static const struct rm_column columns[] = {{"stream", true, 0}, {"worlds", false, 1},
                                               {"lanes", false, 0}, {"rows", false, 0},
                                               {"lost", false, 0},  {"columns", true, 2}};
    const struct rm_style style = rm_style_of(stdout);
    struct rm_table table;
    if (rm_ctl_flag(given, "json")) {
        json_t *json = list_json(r);
        json_dumpf(json, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(json);
        return RM_CTL_OK;
    }
    printf("run %s, world %s, every %s: %s in %" PRIu64 " %s\n\n", r->run, r->world,
           rm_record_every_names[r->every], rm_format_bytes((double)r->bytes).s, r->chunks,
           rm_plural(r->chunks, "chunk", "chunks"));
    rm_table_begin(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t s = 0; s < r->streams; s++) {
        const struct rm_recording_stream *stream = &r->stream[s];
        char names[256] = "";
        uint64_t rows, lost;
        if (count_rows(r, s, &rows, &lost) < 0)
            break;
        for (uint32_t c = 0; c < stream->columns; c++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", c ? " " : "",
                     stream->column[c].name);
        rm_table_cell(&table, "%s", stream->name);
        rm_table_cell(&table, "%u", stream->worlds);
        rm_table_cell(&table, "%u", stream->lanes);
        rm_table_cell(&table, "%" PRIu64, rows);
        rm_table_cell(&table, "%" PRIu64, lost);
        rm_table_cell(&table, "%s", names);
    }
    rm_table_end(&table, stdout, &style);
    return RM_CTL_OK;
}

/* --- verify ----------------------------------------------------------------------------------- */

static void free_columns(void *columns[RM_RECORDING_COLUMNS])
{
    for (uint32_t c = 0; c < RM_RECORDING_COLUMNS; c++)
        free(columns[c]);
}

static int verify(const struct rm_ctl_arguments *given, struct rm_recording *r)
{
    uint64_t damaged = 0;
    (void)given;
    for (uint64_t c = 0; c < r->chunks; c++) {
        void *columns[RM_RECORDING_COLUMNS];
        struct rm_error error = {""};
        if (rm_recording_read(r, c, columns, &error) < 0) {
            rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
            damaged++;
            continue;
        }
        free_columns(columns);
    }
    printf("%" PRIu64 " of %" PRIu64 " %s whole\n", r->chunks - damaged, r->chunks,
           rm_plural(r->chunks, "chunk is", "chunks are"));
    if (r->tail)
        printf("after them %" PRIu64 " bytes of an unfinished chunk, from byte %" PRIu64
               " on; they are ignored\n",
               r->tail, r->bytes);
    return damaged ? RM_CTL_FAILED : RM_CTL_OK;
}

/* --- export ----------------------------------------------------------------------------------- */

/* The head of a file of NumPy, version 1.0: a multiple of 64 bytes. */
static bool put_head(FILE *file, const struct rm_recording_stream *stream,
                     const struct rm_recording_column *column, uint64_t entries)
{
    char text[512];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRIu64 ",",
                                rm_recording_type_name(column->type), entries);
    if (column->per_lane)
        n += (size_t)snprintf(text + n, sizeof text - n, " %u,", stream->lanes);
    for (uint32_t d = 0; d < column->dims; d++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %u,", column->shape[d]);
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    while ((10 + n + 1) % 64)
        text[n++] = ' ';
    text[n++] = '\n';
    const uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)n, (uint8_t)(n >> 8)};
    return fwrite(head, 1, sizeof head, file) == sizeof head && fwrite(text, 1, n, file) == n;
}

/* Whether an entry of a chunk counts, of which a later chunk replaces the rows from `end` on. */
static bool counts(const struct rm_recording *r, void *const *columns, uint32_t i, uint64_t end)
{
    uint64_t row;
    uint32_t steps;
    if (r->every == RM_RECORD_STEP)
        return true;
    memcpy(&row, (const char *)columns[1] + i * sizeof row, sizeof row);
    memcpy(&steps, (const char *)columns[2] + i * sizeof steps, sizeof steps);
    return row == UINT64_MAX || row + steps < end;
}

/* A stream's files: its columns, and with "step" the numbers of the rows. */
struct files {
    FILE *file[RM_RECORDING_COLUMNS + 1];
    uint64_t entries;
};

#define ROW_FILE RM_RECORDING_COLUMNS

static int put_entry(const struct rm_recording *r, uint32_t stream, struct files *files,
                     void *const *columns, uint32_t entries, uint32_t i, uint64_t row)
{
    const struct rm_recording_stream *s = &r->stream[stream];
    bool put = true;
    for (uint32_t c = 0; c < s->columns; c++) {
        const struct rm_recording_column *column = &s->column[c];
        for (uint32_t lane = 0; lane < (column->per_lane ? s->lanes : 1); lane++)
            put &= fwrite((const char *)columns[c] + ((size_t)lane * entries + i) * column->bytes,
                          column->bytes, 1, files->file[c]) == 1;
    }
    if (files->file[ROW_FILE])
        put &= fwrite(&row, sizeof row, 1, files->file[ROW_FILE]) == 1;
    files->entries++;
    return put ? 0 : -errno;
}

static int put_spans(struct rm_recording *r, uint32_t stream, struct files *files,
                     struct rm_error *error)
{
    struct rm_recording_span *spans;
    uint64_t lost;
    const int64_t n = rm_recording_spans(r, stream, &spans, &lost);
    int rc = n < 0 ? rm_fail(error, (int)n, "%s: no memory", r->folder) : 0;
    for (int64_t k = 0; rc == 0 && k < n; k++) {
        void *columns[RM_RECORDING_COLUMNS];
        if ((rc = rm_recording_read(r, spans[k].chunk, columns, error)) < 0)
            break;
        const uint32_t there = r->chunk[spans[k].chunk].entries;
        const uint32_t entries = r->every == RM_RECORD_STEP ? spans[k].rows : there;
        for (uint32_t i = 0; rc == 0 && i < entries && i < there; i++)
            if (counts(r, columns, i, spans[k].first + spans[k].rows) &&
                (rc = put_entry(r, stream, files, columns, there, i, spans[k].first + i)) < 0)
                rm_fail(error, rc, "%s cannot be exported: %s", r->stream[stream].name,
                        strerror(-rc));
        free_columns(columns);
    }
    free(spans);
    return rc;
}

static FILE *open_file(const char *folder, const struct rm_recording_stream *stream,
                       const char *column, struct rm_error *error)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.%s.npy", folder, stream->name, column) >= PATH_MAX)
        return NULL;
    const int fd = rm_file_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0640, error);
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

static int export_stream(struct rm_recording *r, uint32_t number, const char *folder,
                         struct rm_error *error)
{
    static const struct rm_recording_column row = {.type = RM_RECORDED_U64, .name = "row"};
    const struct rm_recording_stream *stream = &r->stream[number];
    const bool steps = r->every == RM_RECORD_STEP;
    struct files files = {{NULL}, 0};
    int rc = 0;
    for (uint32_t c = 0; rc == 0 && c <= RM_RECORDING_COLUMNS; c++) {
        if (c == ROW_FILE ? !steps : c >= stream->columns)
            continue;
        const struct rm_recording_column *column = c == ROW_FILE ? &row : &stream->column[c];
        files.file[c] = open_file(folder, stream, column->name, error);
        /* A head of the same size, until the number of entries is known. */
        if (!files.file[c] || !put_head(files.file[c], stream, column, 0))
            rc = error->text[0] ? -EIO : rm_fail(error, -EIO, "%s cannot be written", folder);
    }
    if (rc == 0)
        rc = put_spans(r, number, &files, error);
    for (uint32_t c = 0; c <= RM_RECORDING_COLUMNS; c++) {
        const struct rm_recording_column *column = c == ROW_FILE ? &row : &stream->column[c];
        FILE *file = files.file[c];
        if (!file)
            continue;
        bool put = rc < 0 ||
                   (fseek(file, 0, SEEK_SET) == 0 && put_head(file, stream, column, files.entries));
        put &= fclose(file) == 0;
        if (!put && rc == 0)
            rc = rm_fail(error, -EIO, "%s cannot be written", folder);
    }
    return rc;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* What Python writes, from the files of a folder. Returns only if it cannot be started. */
static int run_python(const struct rm_recording *r, const char *to)
{
    char path[PATH_MAX];
    const char *environment = getenv("VIRTUAL_ENV");
    snprintf(path, sizeof path, "%s%s", environment ? environment : "",
             environment ? "/bin/python3" : "python3");
    fflush(stdout);
    execlp(path, path, "-m", "ringmaster.recording", r->folder, to, (char *)NULL);
    return rm_ctl_complain(RM_CTL_FAILED, "%s cannot be started: %s", path, strerror(errno));
}

static int export(const struct rm_ctl_arguments *given, struct rm_recording *r)
{
    static const char *const of_python[] = {".npz", ".parquet", ".h5", ".hdf5"};
    const char *to = rm_ctl_value(given, "to");
    struct rm_error error = {""};
    if (!to)
        return rm_ctl_complain(RM_CTL_USAGE, "record export needs --to PATH: a folder for files of "
                                             "NumPy, or a file ending with .npz, .parquet or .h5");
    for (size_t i = 0; i < sizeof of_python / sizeof of_python[0]; i++)
        if (ends_with(to, of_python[i]))
            return run_python(r, to);
    int rc = rm_file_make_folder(to, &error);
    for (uint32_t s = 0; rc == 0 && s < r->streams; s++)
        rc = export_stream(r, s, to, &error);
    return rc < 0 ? rm_ctl_complain(RM_CTL_FAILED, "%s", error.text) : RM_CTL_OK;
}

int rm_ctl_record(const struct rm_ctl_arguments *given)
{
    static const struct {
        const char *name;
        int (*act)(const struct rm_ctl_arguments *given, struct rm_recording *recording);
    } actions[] = {{"ls", list}, {"verify", verify}, {"export", export}};
    struct rm_recording recording;
    struct rm_error error = {""};
    const size_t count = sizeof actions / sizeof actions[0];
    size_t i = 0;
    while (i < count && strcmp(actions[i].name, given->argument[0]) != 0)
        i++;
    if (i == count)
        return rm_ctl_complain(RM_CTL_USAGE, "record %s: should be ls, verify or export",
                               given->argument[0]);
    if (rm_recording_open(&recording, given->argument[1], &error) < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    const int code = actions[i].act(given, &recording);
    rm_recording_close(&recording);
    return code;
}
