/* Draws `top` on the whole screen. On a small terminal, columns at the right and lines at the
 * bottom are omitted. Any size is safe, because ncurses clips. */
#include "daemon/ctl/top.h"

#include "daemon/format.h"
#include "shm/base/plural.h"

#include <math.h>
#include <ncurses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PAIR_PHASE    1 /* pairs of phases: PAIR_PHASE + phase */
#define PAIR_GOOD     (PAIR_PHASE + RM_PHASE_COUNT)
#define PAIR_WARN     (PAIR_GOOD + 1)
#define PAIR_BAD      (PAIR_GOOD + 2)
#define PAIR_BAR      (PAIR_GOOD + 3)
#define BAR_LEAST     12
#define WORKERS_LEAST 6 /* lines that figures leave them */
#define CURVE_COLUMN  7
#define CURVE_CELLS   120
#define CURVE_LEVELS  8
#define CURVE_REST    (CURVE_COLUMN + 26) /* columns that are not the curve's */
#define AGENT_NAME    14                  /* columns of names where there is little room */
#define WORKER_NAME   18

static bool colours;

void rm_top_colours(void)
{
    /* Background of each phase: of 256 colours where there are so many, else of eight. Those of
     * 256 are distinct for people who are colour-blind: at least 20 apart in CIELAB as they are and
     * as protanopes, deuteranopes and tritanopes see them (Machado 2009, full severity). */
    static const short rich[] = {
        [RM_PHASE_OTHER] = 241,     [RM_PHASE_ENVIRONMENT] = 35, [RM_PHASE_INFERENCE] = 81,
        [RM_PHASE_RING] = 185,      [RM_PHASE_WAITING] = 236,    [RM_PHASE_SAMPLING] = 88,
        [RM_PHASE_UPLOAD] = 175,    [RM_PHASE_FORWARD] = 27,     [RM_PHASE_BACKWARD] = 130,
        [RM_PHASE_OPTIMIZER] = 127, [RM_PHASE_PUBLISH] = 151,    [RM_PHASE_CHECKPOINT] = 231,
    };
    static const bool dark_of_256[RM_PHASE_COUNT] = {
        [RM_PHASE_OTHER] = true,   [RM_PHASE_WAITING] = true,  [RM_PHASE_SAMPLING] = true,
        [RM_PHASE_FORWARD] = true, [RM_PHASE_BACKWARD] = true, [RM_PHASE_OPTIMIZER] = true,
    };
    static const short plain[] = {
        [RM_PHASE_OTHER] = COLOR_WHITE,    [RM_PHASE_ENVIRONMENT] = COLOR_GREEN,
        [RM_PHASE_INFERENCE] = COLOR_CYAN, [RM_PHASE_RING] = COLOR_YELLOW,
        [RM_PHASE_WAITING] = COLOR_BLACK,  [RM_PHASE_SAMPLING] = COLOR_YELLOW,
        [RM_PHASE_UPLOAD] = COLOR_MAGENTA, [RM_PHASE_FORWARD] = COLOR_BLUE,
        [RM_PHASE_BACKWARD] = COLOR_RED,   [RM_PHASE_OPTIMIZER] = COLOR_MAGENTA,
        [RM_PHASE_PUBLISH] = COLOR_CYAN,   [RM_PHASE_CHECKPOINT] = COLOR_WHITE,
    };
    _Static_assert(sizeof rich == sizeof plain && sizeof rich / sizeof rich[0] == RM_PHASE_COUNT,
                   "every phase has its colours");
    colours = false;
    const char *no_colour = getenv("NO_COLOR");
    if ((no_colour && *no_colour) || !has_colors() || start_color() == ERR)
        return;
    colours = true;
    use_default_colors();
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        short back = COLORS >= 256 ? rich[p] : plain[p];
        const bool dark = COLORS >= 256 ? dark_of_256[p] : p == RM_PHASE_WAITING;
        const short fore = dark ? COLOR_WHITE : COLOR_BLACK;
        init_pair((short)(PAIR_PHASE + p), fore, back);
    }
    init_pair(PAIR_GOOD, COLOR_GREEN, -1);
    init_pair(PAIR_WARN, COLOR_YELLOW, -1);
    init_pair(PAIR_BAD, COLOR_RED, -1);
    init_pair(PAIR_BAR, COLOR_BLACK, COLOR_GREEN);
}

static attr_t paint(int pair)
{
    return colours ? (attr_t)COLOR_PAIR(pair) : A_NORMAL;
}

static attr_t state_paint(const char *state)
{
    static const struct {
        const char *state;
        int pair;
    } pairs[] = {
        {"running", PAIR_GOOD},     {"up", PAIR_GOOD},       {"done", PAIR_GOOD},
        {"paused", PAIR_WARN},      {"starting", PAIR_WARN}, {"stopping", PAIR_WARN},
        {"backing off", PAIR_WARN}, {"failed", PAIR_BAD},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (!strcmp(pairs[i].state, state))
            return paint(pairs[i].pair) | A_BOLD;
    return A_NORMAL;
}

/* Cuts what is longer than `room`: before a word, so that no number is cut, or inside of the only
 * word. A '~' shows it. */
static void shorten(char *text, int room)
{
    if ((int)strlen(text) <= room || room < 1)
        return;
    int end = room - 1;
    for (int i = 1; i < room - 1; i++)
        if (text[i] == ' ')
            end = i + 1;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--; /* a character of several bytes */
    text[end] = '~';
    text[end + 1] = '\0';
}

/* At (y, x), never beyond the right edge; control characters of foreign text become '?'. Returns
 * the column after it. */
static int put(int y, int x, attr_t how, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int put(int y, int x, attr_t how, const char *format, ...)
{
    char text[1280];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    int width = COLS - x;
    if (y < 0 || y >= LINES || width <= 0)
        return x;
    shorten(text, width);
    attrset(how);
    mvaddnstr(y, x, text, width);
    attrset(A_NORMAL);
    return x + (int)strlen(text);
}

/* The same if all of it fits, else nothing: half a number is another number. */
static int put_whole(int y, int x, attr_t how, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int put_whole(int y, int x, attr_t how, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return x + (int)strlen(text) <= COLS ? put(y, x, how, "%s", text) : x;
}

/* A name in a column. */
static int put_name(int y, int x, attr_t how, int width, const char *name)
{
    char text[RM_SNAPSHOT_TEXT];
    snprintf(text, sizeof text, "%s", name);
    shorten(text, width);
    return put(y, x, how, "%-*s", width, text);
}

static void draw_progress(int y, const struct rm_snapshot *s)
{
    double progress = rm_snapshot_progress(s);
    char after[160];
    if (isnan(progress)) {
        put(y, 0, A_NORMAL, "%s steps per agent, no end set", rm_format_count(s->steps).s);
        return;
    }
    snprintf(after, sizeof after, " %6s  %s of %s steps  %s left", rm_format_percent(progress).s,
             rm_format_count(s->steps).s, rm_format_count(s->steps_budget).s,
             rm_format_duration(s->left_s).s);
    int cells = COLS - (int)strlen(after) - 2;
    if (cells < BAR_LEAST)
        cells = BAR_LEAST;
    int full = (int)(progress * cells);
    put(y, 0, A_NORMAL, "[");
    for (int i = 0; i < cells; i++)
        put(y, 1 + i, i < full ? paint(PAIR_BAR) : A_DIM, "%c",
            i < full ? (colours ? ' ' : '#') : '.');
    put(y, 1 + cells, A_NORMAL, "]%s", after);
}

/* The learning curve, a character a part of the run, and the values it lies between. */
static void draw_curve(int y, const struct rm_curve *curve)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
    const char *const *levels = MB_CUR_MAX > 1 ? blocks : plain;
    double mean[CURVE_CELLS], least = INFINITY, most = -INFINITY;
    const size_t room = COLS > CURVE_REST ? (size_t)(COLS - CURVE_REST) : 0;
    const size_t cells = rm_curve_means(curve, mean, room < CURVE_CELLS ? room : CURVE_CELLS);
    for (size_t i = 0; i < cells; i++) {
        least = fmin(least, mean[i]);
        most = fmax(most, mean[i]);
    }
    if (cells < 2)
        return;
    put(y, 0, A_NORMAL, "curve");
    for (size_t i = 0; i < cells; i++) {
        const double height = most > least ? (mean[i] - least) / (most - least) : 0;
        mvaddstr(y, CURVE_COLUMN + (int)i, levels[(int)lround(height * (CURVE_LEVELS - 1))]);
    }
    put_whole(y, CURVE_COLUMN + (int)cells, A_NORMAL, "  %s to %s", rm_format_measure(least).s,
              rm_format_measure(most).s);
}

/* With the change if there is room for all of it. */
static void draw_verdict(int y, const char *verdict)
{
    if ((int)strlen(verdict) <= COLS)
        put(y, 0, A_NORMAL, "%s", verdict);
    else
        put(y, 0, A_NORMAL, "%.*s ~", (int)strcspn(verdict, ";"), verdict);
}

static int draw_head(const struct rm_top *top)
{
    const struct rm_snapshot *s = top->now;
    const char *state = top->ended ? "ended" : s->state;
    const int length = (int)strlen(s->name), room = COLS - 2 - (int)strlen(state);
    int x = put_name(0, 0, A_BOLD, length < room ? length : room, s->name);
    x = put(0, x + 2, top->ended ? paint(PAIR_BAD) | A_BOLD : state_paint(state), "%s", state);
    if (s->mode[0])
        x = put_whole(0, x + 2, A_NORMAL, "mode %s", s->mode);
    x = put_whole(0, x + 2, A_NORMAL, "up %s", rm_format_duration(s->uptime_s).s);
    x = put_whole(0, x + 2, A_BOLD, "%s steps/s", rm_format_count(rm_top_speed(top)).s);
    if (!isnan(s->rss_bytes))
        put_whole(0, x + 2, A_NORMAL, "%s in workers", rm_format_bytes(s->rss_bytes).s);
    draw_progress(1, s);
    int y = 2;
    if (s->episodes > 0) {
        x = put_whole(y, 0, A_NORMAL, "score  first %s  last ",
                      rm_format_measure(s->score_first).s);
        x = put_whole(y, x, A_BOLD, "%s", rm_format_measure(s->score_last).s);
        x = put_whole(y, x, A_NORMAL, "  over %s %s", rm_format_count(s->episodes).s,
                      rm_plural((uint64_t)s->episodes, "episode", "episodes"));
        if (s->evaluations > 0)
            x = put_whole(y, x, A_NORMAL, "   greedy %s +- %s", rm_format_measure(s->eval_mean).s,
                          rm_format_measure(s->eval_stderr).s);
        if (s->stages > 0)
            x = put_whole(y, x, A_NORMAL, "   stage %.0f of %.0f", s->stage, s->stages);
        if (!isnan(s->score_random))
            put_whole(y, x, A_NORMAL, "   random play %s", rm_format_measure(s->score_random).s);
        y++;
        if (top->curve.count > 1)
            draw_curve(y++, &top->curve);
    }
    if (top->verdict[0])
        draw_verdict(y++, top->verdict);
    if (s->error[0])
        put(y++, 0, paint(PAIR_BAD) | A_BOLD, "%s", s->error);
    return y + 1;
}

static const struct rm_snapshot_policy *policy_of(const struct rm_snapshot *s,
                                                  const struct rm_snapshot_agent *agent)
{
    for (unsigned p = 0; p < s->policies; p++)
        if (!strcmp(s->policy[p].name, agent->policy))
            return &s->policy[p];
    return NULL;
}

/* Policies learn all from rollouts or all from replay; frozen ones from nothing. */
static bool has_rollouts(const struct rm_snapshot *s)
{
    for (unsigned p = 0; p < s->policies; p++)
        if (!isnan(s->policy[p].rollouts))
            return true;
    return false;
}

/* Columns of a table, and which give way first in a narrow terminal; 0: never. */
struct column {
    const char *title;
    int width, omit;
};
enum { AGENT_COLUMNS = 11, WORKER_COLUMNS = 5 };

static void widen(struct column *column, const char *cell)
{
    const int width = (int)strlen(cell);
    if (width > column->width)
        column->width = width;
}

/* Leaves columns out until the others fit, the first with at most `name`; what is left over is for
 * names. Returns the width of all. */
static int fit_columns(struct column *columns, int count, int name)
{
    const int longest = columns[0].width;
    int width = 0;
    if (columns[0].width > name)
        columns[0].width = name;
    for (int c = 0; c < count; c++)
        width += columns[c].width + (c > 0);
    while (width > COLS) {
        int first = 0;
        for (int c = 1; c < count; c++)
            if (columns[c].width && columns[c].omit > columns[first].omit)
                first = c;
        if (!columns[first].omit)
            break;
        width -= columns[first].width + 1;
        columns[first] = (struct column){NULL, 0, 0};
    }
    while (width < COLS && columns[0].width < longest) {
        columns[0].width++;
        width++;
    }
    return width;
}

static void agent_cells(struct rm_text *cells, const struct rm_snapshot *s,
                        const struct rm_snapshot_agent *a, bool rollouts)
{
    const struct rm_snapshot_policy none = {.name = "",
                                            .env_steps = NAN,
                                            .updates = NAN,
                                            .replay_fill = NAN,
                                            .replay_ratio = NAN,
                                            .lag_mean = NAN,
                                            .epsilon = NAN,
                                            .entropy = NAN,
                                            .kl = NAN,
                                            .loss = NAN};
    const struct rm_snapshot_policy *p = policy_of(s, a);
    if (!p)
        p = &none;
    const struct rm_text all[AGENT_COLUMNS] = {
        {""},
        rm_format_measure(a->first),
        rm_format_measure(a->last),
        rm_format_measure(a->eval_mean),
        rm_format_count(a->env_steps),
        rm_format_count(p->updates),
        rollouts ? rm_format_measure(p->entropy) : rm_format_percent(p->replay_fill),
        rm_format_measure(p->replay_ratio),
        rm_format_measure(p->lag_mean),
        rollouts ? rm_format_measure(p->kl) : rm_format_number(p->epsilon),
        rm_format_measure(p->loss)};
    memcpy(cells, all, sizeof all);
}

/* In at most so many lines below the titles, but of one agent in any case. */
static int draw_agents(int y, int most, const struct rm_snapshot *s)
{
    const bool rollouts = has_rollouts(s);
    const int agents = (int)s->agents;
    const int shown = agents <= most ? agents : most > 2 ? most - 1 : 1;
    struct rm_text cells[RM_BOARD_AGENTS][AGENT_COLUMNS];
    struct column columns[] = {{"AGENT", 5, 0},
                               {"FIRST", 8, 5},
                               {"LAST", 8, 1},
                               {"GREEDY", 8, 2},
                               {"STEPS", 8, 4},
                               {"UPDATES", 8, 6},
                               {rollouts ? "ENTROPY" : "REPLAY", 7, 8},
                               {"RATIO", 7, 9},
                               {"LAG", 7, 7},
                               {rollouts ? "KL" : "EPSILON", 8, 10},
                               {"LOSS", 9, 3}};
    _Static_assert(sizeof columns / sizeof columns[0] == AGENT_COLUMNS, "those of agent_cells()");
    for (int i = 0; i < shown; i++) {
        agent_cells(cells[i], s, &s->agent[i], rollouts);
        widen(&columns[0], s->agent[i].name);
        for (int c = 1; c < AGENT_COLUMNS; c++)
            widen(&columns[c], cells[i][c].s);
    }
    const int width = fit_columns(columns, AGENT_COLUMNS, AGENT_NAME);
    int x = put(y, 0, A_REVERSE, "%-*s", columns[0].width, columns[0].title);
    for (int c = 1; c < AGENT_COLUMNS; c++)
        if (columns[c].width)
            x = put(y, x, A_REVERSE, " %*s", columns[c].width, columns[c].title);
    put(y++, x, A_REVERSE, "%*s", COLS > width ? COLS - width : 0, "");
    for (int i = 0; i < shown; i++, y++) {
        x = put_name(y, 0, A_NORMAL, columns[0].width, s->agent[i].name);
        for (int c = 1; c < AGENT_COLUMNS; c++)
            if (columns[c].width)
                x = put(y, x, c == 2 ? A_BOLD : A_NORMAL, " %*s", columns[c].width, cells[i][c].s);
    }
    if (shown < agents)
        put(y++, 0, A_NORMAL, "and %d more: a taller terminal shows them", agents - shown);
    return y + 1;
}

/* One line for each agent with the figures of its latest episodes, if there are more than lengths.
 */
static int draw_figures(int y, int most, const struct rm_snapshot *s)
{
    const int before = y;
    for (unsigned i = 0; i < s->agents && most-- > 0; i++) {
        const struct rm_snapshot_agent *a = &s->agent[i];
        int x = 14;
        if (a->figures < 2)
            continue;
        put_name(y, 0, A_NORMAL, 13, a->name);
        for (unsigned f = 0; f < a->figures; f++)
            x = put_whole(y, x, A_NORMAL, " %s %s ", a->figure[f].name,
                          rm_format_measure(a->figure[f].last).s);
        y++;
    }
    return y > before ? y + 1 : y;
}

static void draw_bar(int y, int x, int cells, const double *share)
{
    int count[RM_PHASE_COUNT];
    rm_top_split(share, cells, count);
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        for (int i = 0; i < count[p]; i++)
            x = put(y, x, paint(PAIR_PHASE + p), "%c", rm_top_phase_letter(p));
}

static void worker_cells(struct rm_text *cells, const struct rm_snapshot_worker *w)
{
    struct rm_text pid = {"-"};
    if (w->pid > 0)
        snprintf(pid.s, sizeof pid.s, "%.0f", w->pid);
    const struct rm_text all[WORKER_COLUMNS] = {
        {""}, pid, {""}, rm_format_count(w->generation), rm_format_count(w->deaths)};
    memcpy(cells, all, sizeof all);
}

static void draw_workers(int y, int last, const struct rm_top *top)
{
    unsigned index[RM_BOARD_WORKERS];
    const struct rm_snapshot *s = top->now;
    struct rm_text cells[WORKER_COLUMNS];
    struct column columns[] = {
        {"WORKER", 6, 0}, {"PID", 7, 0}, {"STATE", 11, 0}, {"RUN", 4, 0}, {"DEATHS", 6, 0}};
    _Static_assert(sizeof columns / sizeof columns[0] == WORKER_COLUMNS, "those of worker_cells()");
    for (unsigned i = 0; i < s->workers; i++) {
        worker_cells(cells, &s->worker[i]);
        widen(&columns[0], s->worker[i].name);
        for (int c = 1; c < WORKER_COLUMNS; c++)
            widen(&columns[c], cells[c].s);
    }
    if (columns[0].width > WORKER_NAME)
        columns[0].width = WORKER_NAME;
    rm_top_sort(top, index);
    int bar = put(y, 0, A_REVERSE, "%-*s %*s %-*s %*s %*s  ", columns[0].width, columns[0].title,
                  columns[1].width, columns[1].title, columns[2].width, columns[2].title,
                  columns[3].width, columns[3].title, columns[4].width, columns[4].title);
    put(y++, bar, A_REVERSE, "%-*s", COLS > bar ? COLS - bar : 0, "TIME GOES TO");
    for (unsigned i = (unsigned)top->scroll; i < s->workers && y <= last; i++, y++) {
        const struct rm_snapshot_worker *w = &s->worker[index[i]];
        double share[RM_PHASE_COUNT];
        worker_cells(cells, w);
        const char *state = w->state[0] ? w->state : w->supervised;
        /* The supervisor's word counts where there is no process that could have one. */
        if (w->supervised[0] && strcmp(w->supervised, "up") != 0)
            state = w->supervised;
        int x = put_name(y, 0, A_NORMAL, columns[0].width, w->name);
        x = put(y, x, A_NORMAL, " %*s ", columns[1].width, cells[1].s);
        x = put_name(y, x, state_paint(state), columns[2].width, state);
        put(y, x, w->deaths > 0 ? paint(PAIR_WARN) : A_NORMAL, " %*s %*s", columns[3].width,
            cells[3].s, columns[4].width, cells[4].s);
        if (!strcmp(state, "failed") || !strcmp(state, "backing off")) {
            put(y, bar, paint(PAIR_BAD), "%s", w->reason);
            continue;
        }
        rm_snapshot_phases(w, rm_top_earlier(top, w), share);
        int cells_left = COLS - bar - 1;
        draw_bar(y, bar, cells_left < BAR_LEAST ? BAR_LEAST : cells_left, share);
    }
}

/* Only phases that some worker has spent time in. Ends above line `end`; returns its first line. */
static int draw_legend(int end, const struct rm_snapshot *s)
{
    int column[RM_PHASE_COUNT], line[RM_PHASE_COUNT], x = 0, lines = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++) {
        const int width = 2 + (int)strlen(rm_phase_name((enum rm_phase)p));
        bool seen = false;
        for (unsigned w = 0; w < s->workers; w++)
            seen = seen || s->worker[w].phase[p] >= 0.0005;
        line[p] = -1;
        if (!seen)
            continue;
        if (lines == 0 || x + width > COLS) {
            lines++;
            x = 0;
        }
        line[p] = lines - 1;
        column[p] = x;
        x += width + 2;
    }
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        if (line[p] >= 0) {
            x = put(end - lines + line[p], column[p], paint(PAIR_PHASE + p), "%c",
                    rm_top_phase_letter(p));
            put(end - lines + line[p], x, A_NORMAL, " %s", rm_phase_name((enum rm_phase)p));
        }
    return end - lines;
}

static void draw_help(void)
{
    static const char *const lines[] = {
        "FIRST, LAST   mean reward per episode over the first and the latest episodes",
        "GREEDY        mean reward in the last evaluation, without exploration",
        "curve         score over the run so far",
        "... limits    what ringctl explain says, a change, and its predicted gain",
        "REPLAY        share of the replay memory that is filled",
        "ENTROPY, KL   of the policy in the latest updates, and how far it moved",
        "RATIO         transitions sampled per transition inserted",
        "LAG           updates from the weights acted with to the learner's own, mean",
        "RUN           which start of the worker this is",
        "bars          where each worker's time went since the last look",
        "~             a name or a sentence is longer than there is room for",
        "",
        "q   quit                     p   pause or resume",
        "s   order of the workers     e   evaluate now",
        "n   next experiment          ?   this page",
        "up, down   scroll workers",
    };
    int count = (int)(sizeof lines / sizeof lines[0]), y = LINES > count + 4 ? 4 : 0;
    for (int i = 0; i < count; i++) {
        move(y + i, 0);
        clrtoeol();
        put(y + i, 2, A_NORMAL, "%s", lines[i]);
    }
}

static void draw_foot(const struct rm_top *top)
{
    int x =
        put(LINES - 1, 0, A_REVERSE, " q quit  p %s  s order: %s  e evaluate  n next  ? help ",
            !strcmp(top->now->state, "paused") ? "resume" : "pause", rm_top_order_name(top->order));
    if (x + 1 + (int)strlen(top->message) > COLS) { /* what was said counts more than the keys */
        move(LINES - 1, 0);
        clrtoeol();
        x = -1;
    }
    put(LINES - 1, x + 1, top->ended ? paint(PAIR_BAD) | A_BOLD : A_BOLD, "%s", top->message);
}

void rm_top_draw(const struct rm_top *top)
{
    erase();
    if (!top->have_now) {
        put(0, 0, A_BOLD, "%s", top->message);
        refresh();
        return;
    }
    int y = draw_head(top);
    if (top->help) {
        draw_help();
    } else {
        const int foot = draw_legend(LINES - 1, top->now), half = (foot - y) / 2;
        if (top->now->agents)
            y = draw_agents(y, half > 1 ? half - 1 : 1, top->now);
        const int workers =
            top->now->workers < WORKERS_LEAST ? (int)top->now->workers : WORKERS_LEAST;
        y = draw_figures(y, foot - y - workers - 2, top->now);
        draw_workers(y, foot - 1, top);
    }
    draw_foot(top);
    refresh();
}
