#include "daemon/console.h"

#include "daemon/format.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define WIDTH_UNKNOWN  80
#define PLAIN_EVERY_NS (5 * RM_NS_PER_S) /* a file needs fewer lines than a terminal */
#define BAR_CELLS      16
#define SHOWN_AGENTS   8 /* rewards in the live line; beyond that their mean */

/* How the live line is written: as long as the terminal allows. */
struct style {
    int bar_cells;
    int digits;                /* of rewards; 0: those of rm_format_measure() */
    const char *per_s, *left;  /* words after the rate and the time */
    const char *updates_per_s; /* after the rate with a recording */
    const char *of;            /* what is evaluated */
};
static const struct style styles[] = {
    {16, 0, " steps/s  ", " left", " updates/s  ", " of the last weights"},
    {8, 3, " steps/s  ", " left", " updates/s  ", ""},
    {5, 3, "/s ", "", "/s ", ""},
};
#define STYLES (sizeof styles / sizeof styles[0])

/* Text that is cut at the end of its room. */
struct text {
    char *at;
    size_t size, used;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 2, 0))) static void add_list(struct text *t, const char *format,
                                                           va_list list)
{
    int n = vsnprintf(t->at + t->used, t->size - t->used, format, list);
    if (n > 0)
        t->used += (size_t)n < t->size - t->used ? (size_t)n : t->size - t->used - 1;
}

static void add(struct text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    add_list(t, format, list);
    va_end(list);
}

/* 1234567 -> "1.23M": three digits say enough. */
static void add_count(struct text *t, double value)
{
    if (value >= 1e6)
        add(t, "%.3gM", value / 1e6);
    else if (value >= 1e4)
        add(t, "%.0fk", value / 1e3);
    else if (value >= 1e3)
        add(t, "%.1fk", value / 1e3);
    else
        add(t, "%.0f", value);
}

static void add_duration(struct text *t, double seconds)
{
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (s >= 3600)
        add(t, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        add(t, "%lu:%02lu", s / 60, s % 60);
}

static void add_bar(struct text *t, double fraction, int cells)
{
    int full = (int)(fraction * cells + 0.5);
    add(t, "[");
    for (int i = 0; i < cells; i++)
        add(t, "%c", i < full ? '#' : '-');
    add(t, "] %3.0f%%", 100 * fraction);
}

static void add_rewards(struct text *t, const struct rm_board_view *board, int digits)
{
    double sum = 0, mean;
    uint32_t with = 0;
    add(t, "  reward");
    for (uint32_t a = 0; a < board->run->agents; a++) {
        uint32_t n = rm_scores_last(&board->agents[a].scores, &mean);
        sum += n ? mean : 0;
        with += n > 0;
        if (board->run->agents > SHOWN_AGENTS)
            continue;
        if (n && digits)
            add(t, " %.*g", digits, mean);
        else
            add(t, " %s", rm_format_measure(n ? mean : NAN).s);
    }
    if (board->run->agents > SHOWN_AGENTS && with)
        add(t, " %s (mean of %u agents)", rm_format_measure(sum / with).s, with);
}

/* Learning from rollouts: how sure the policies still are not, and how far a rollout moved them.
 * Means over those that have had one: frozen opponents have none. */
static void add_rollouts(struct text *t, const struct rm_board_view *board)
{
    double entropy = 0, kl = 0;
    uint32_t with = 0;
    for (uint32_t p = 0; p < board->run->policies; p++) {
        entropy += RM_PEEK(&board->policies[p].entropy);
        kl += RM_PEEK(&board->policies[p].kl);
        with += RM_PEEK(&board->policies[p].rollouts) > 0;
    }
    with = with ? with : 1;
    add(t, "  entropy %.2f  kl %.4f", entropy / with, kl / with);
}

static void add_replay(struct text *t, const struct rm_board_view *board)
{
    uint64_t rows = 0, capacity = 0, samples = 0, steps = 0, lag_sum = 0, lag_count = 0;
    for (uint32_t p = 0; p < board->run->policies; p++) {
        const struct rm_board_policy *policy = &board->policies[p];
        rows += RM_PEEK(&policy->replay_rows);
        capacity += RM_PEEK(&policy->replay_capacity);
        samples += RM_PEEK(&policy->samples);
        steps += RM_PEEK(&policy->env_steps);
        lag_sum += RM_PEEK(&policy->lag_sum);
        lag_count += RM_PEEK(&policy->lag_count);
    }
    if (capacity == 0)
        add_rollouts(t, board);
    else
        add(t, "  replay %.0f%%", 100.0 * (double)rows / (double)capacity);
    add(t, "  ratio %.2f", steps ? (double)samples / (double)steps : 0.0);
    add(t, "  lag %.2f", lag_count ? (double)lag_sum / (double)lag_count : 0.0);
}

/* How fast, how far. */
static void add_progress(struct text *t, const struct rm_progress *p, const struct style *style)
{
    uint64_t steps = rm_session_steps(p->session);
    uint64_t budget = p->session->board.run->env_steps_budget;

    const bool offline = rm_experiment_is_offline(&p->session->experiment);
    add_count(t, rm_rate_per_s(offline ? &p->updates_rate : &p->steps_rate));
    add(t, "%s", offline ? style->updates_per_s : style->per_s);
    if (budget) {
        double left = rm_progress_time_left(p);
        add_bar(t, steps < budget ? (double)steps / (double)budget : 1.0, style->bar_cells);
        add(t, " ");
        if (left < 0)
            add(t, "-:--");
        else
            add_duration(t, left);
        add(t, "%s", style->left);
    } else {
        add_count(t, (double)steps);
        add(t, " steps");
    }
}

/* What goes on when no step is to come any more; false: there are some. */
static bool add_ending(struct text *t, const struct rm_progress *p, const struct style *style)
{
    const uint32_t episodes = p->session->experiment.evaluation.final_episodes;
    if (p->life == RM_LIFE_EVALUATING)
        add(t, "evaluating: %u %s%s", episodes, rm_plural(episodes, "episode", "episodes"),
            style->of);
    else if (p->life < RM_LIFE_EVALUATING && p->trained_ns)
        add(t, "writing the last checkpoint");
    else
        return false;
    return true;
}

static void add_line(struct text *t, const struct rm_progress *p, const struct style *style)
{
    const struct rm_board_view *board = &p->session->board;
    enum rm_run_state state = RM_PEEK(&board->run->state);

    if (state != RM_RUN_RUNNING)
        add(t, "%s  ", rm_run_state_name(state));
    if (!add_ending(t, p, style))
        add_progress(t, p, style);
    add_rewards(t, board, style->digits);
    add_replay(t, board);
}

size_t rm_console_line(char *line, size_t size, const struct rm_progress *progress, unsigned width)
{
    char whole[LINE_MAX_BYTES];
    struct text t = {.at = whole, .size = sizeof whole};
    size_t room = width < size ? width : size - 1;
    if (size == 0)
        return 0;
    for (size_t i = 0; i < STYLES; i++) {
        t.used = 0;
        add_line(&t, progress, &styles[i]);
        if (t.used <= room)
            break;
    }
    size_t n = t.used < room ? t.used : room;
    memcpy(line, whole, n);
    line[n] = '\0';
    return n;
}

void rm_console_open(struct rm_console *console, FILE *out)
{
    memset(console, 0, sizeof *console);
    console->out = out;
    console->terminal = out && isatty(fileno(out));
    console->last_ns = rm_now_ns(); /* nothing to show in the first moments */
}

static void write_out(struct rm_console *console, const char *text)
{
    if (console->echoes) {
        (void)rm_writer_put(console->echoes, rm_write_through, fileno(console->out), text,
                            strlen(text), NULL);
        return;
    }
    fputs(text, console->out);
    fflush(console->out);
}

void rm_console_clear(struct rm_console *console)
{
    if (!console->out || !console->drawn)
        return;
    write_out(console, "\r\033[K");
    console->drawn = false;
}

void rm_console_say(struct rm_console *console, const char *format, ...)
{
    char line[LINE_MAX_BYTES + PATH_MAX];
    struct text t = {.at = line, .size = sizeof line - 1};
    if (!console->out)
        return;
    rm_console_clear(console);
    va_list list;
    va_start(list, format);
    add_list(&t, format, list);
    va_end(list);
    memcpy(line + t.used, "\n", 2); /* there is room for it */
    write_out(console, line);
}

void rm_console_live(struct rm_console *console, const struct rm_progress *progress,
                     uint64_t now_ns)
{
    char line[LINE_MAX_BYTES], drawn[LINE_MAX_BYTES + 8];
    struct winsize size;
    uint64_t every = console->terminal ? RM_NS_PER_S * 9 / 10 : PLAIN_EVERY_NS;
    if (!console->out || (console->last_ns && now_ns - console->last_ns < every))
        return;
    console->last_ns = now_ns;
    if (!console->terminal) {
        rm_console_line(line, sizeof line, progress, sizeof line - 1);
        rm_console_say(console, "%s", line);
        return;
    }
    unsigned width = WIDTH_UNKNOWN;
    if (ioctl(fileno(console->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        width = size.ws_col;
    /* One column less, or some terminals wrap. */
    rm_console_line(line, sizeof line, progress, width - 1);
    snprintf(drawn, sizeof drawn, "\r%s\033[K", line);
    write_out(console, drawn);
    console->drawn = true;
}
