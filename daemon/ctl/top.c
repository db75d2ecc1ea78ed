#include "daemon/ctl/top.h"

#include "daemon/ctl/command.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "shm/base/clock.h"

#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_NS RM_NS_PER_S
#define MESSAGE_NS  (5 * RM_NS_PER_S) /* how long what was said stays */
#define ANSWER_NS   (2 * RM_NS_PER_S) /* keys must not wait long for a silent experiment */

struct view {
    struct rm_top top;
    struct rm_ctl_client client;
    uint64_t now_ns, before_ns; /* when the snapshots were taken */
    uint64_t said_ns;
    bool quit;
};

static void show_message(struct view *view, const char *text)
{
    snprintf(view->top.message, sizeof view->top.message, "%s", text);
    view->said_ns = rm_now_ns();
}

/* One request. Losing the connection ends the view's life but not the view. */
static int ask(struct view *view, const char *command, json_t **reply)
{
    struct rm_error error = {""};
    if (view->top.ended)
        return -ECONNRESET;
    int rc = rm_ctl_client_call(&view->client, command, NULL, reply, &error);
    view->top.ended = rc == -ECONNRESET || rc == -EPROTO;
    if (rc)
        show_message(view, rc == -ECONNRESET ? "the experiment has ended; q quits" : error.text);
    return rc;
}

static void refresh_view(struct view *view)
{
    struct rm_top *top = &view->top;
    json_t *reply = NULL;
    if (ask(view, "status", &reply))
        return;
    struct rm_snapshot *oldest = top->before;
    top->before = top->now;
    top->now = oldest;
    view->before_ns = view->now_ns;
    view->now_ns = rm_now_ns();
    top->seconds_between = (double)(view->now_ns - view->before_ns) / (double)RM_NS_PER_S;
    if (!top->have_now)
        show_message(view, "");
    top->have_before = top->have_now;
    top->have_now = true;
    rm_snapshot_read(top->now, reply);
    json_decref(reply);
    rm_curve_read(&top->curve, top->now->directory, "score_last", "steps");
    rm_top_explain(top, view->now_ns);
}

static void command_key(struct view *view, const char *command, const char *done)
{
    json_t *reply = NULL;
    if (ask(view, command, &reply) == 0) {
        show_message(view, done);
        refresh_view(view);
    }
    json_decref(reply);
}

static void key_quit(struct view *view)
{
    view->quit = true;
}

static void key_pause(struct view *view)
{
    bool paused = !strcmp(view->top.now->state, "paused");
    command_key(view, paused ? "resume" : "pause", paused ? "resumed" : "paused");
}

static void key_order(struct view *view)
{
    view->top.order = (view->top.order + 1) % RM_TOP_ORDER_COUNT;
}

static void key_evaluate(struct view *view)
{
    command_key(view, "evaluate", "evaluating");
}

/* The running experiment after this one by name, of those that answer this user. */
static void key_next(struct view *view)
{
    struct rm_found *found = NULL;
    struct rm_error error = {""};
    struct rm_ctl_client client = {.fd = -1};
    int count = rm_find_sockets(&found, &error), at = 0;
    while (at < count && strcmp(found[at].name, view->top.now->name) != 0)
        at++;
    for (int i = 1; i < count && client.fd < 0; i++) {
        const char *socket = found[(at + i) % count].socket;
        if (rm_find_alive(socket))
            (void)rm_ctl_client_open(&client, socket, view->client.timeout_ns, &error);
    }
    free(found);
    if (client.fd < 0) {
        show_message(view, "no other experiment is running");
        return;
    }
    rm_ctl_client_close(&view->client);
    rm_curve_close(&view->top.curve);
    view->client = client;
    view->top.ended = view->top.have_now = false;
    view->top.explained_ns = 0;
    view->top.scroll = 0;
    refresh_view(view);
}

static void key_help(struct view *view)
{
    view->top.help = !view->top.help;
}

static void key_up(struct view *view)
{
    view->top.scroll -= view->top.scroll > 0;
}

static void key_down(struct view *view)
{
    view->top.scroll += view->top.scroll + 1 < (int)view->top.now->workers;
}

static const struct {
    int key;
    void (*act)(struct view *view);
} keys[] = {
    {'q', key_quit},      {'p', key_pause}, {'s', key_order}, {'e', key_evaluate},
    {'n', key_next},      {'?', key_help},  {'h', key_help},  {KEY_UP, key_up},
    {KEY_DOWN, key_down}, {'k', key_up},    {'j', key_down},
};

static void handle(struct view *view, int key)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].key == key)
            keys[i].act(view);
}

static void loop(struct view *view)
{
    uint64_t due = rm_now_ns();
    while (!view->quit) {
        uint64_t now = rm_now_ns();
        if (now >= due) {
            refresh_view(view);
            due = now + INTERVAL_NS;
        }
        if (!view->top.ended && now - view->said_ns > MESSAGE_NS)
            show_message(view, "");
        rm_top_draw(&view->top);
        now = rm_now_ns();
        /* After the end there is nothing to look at: only a key can come. */
        timeout(view->top.ended ? -1 : due > now ? (int)((due - now) / RM_NS_PER_MS) + 1 : 0);
        int key = getch(); /* KEY_RESIZE as well: the next turn draws by the new size */
        if (key == ERR && view->top.ended)
            break; /* the terminal is gone */
        handle(view, key);
    }
}

int rm_ctl_top(const struct rm_ctl_arguments *given)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return rm_ctl_complain(RM_CTL_USAGE, "top needs a terminal; 'ringctl status' does not");
    struct view *view = calloc(1, sizeof *view);
    if (!view)
        return rm_ctl_complain(RM_CTL_FAILED, "no memory for a view");
    int rc = rm_find_open(&view->client, given);
    view->top.now = calloc(1, sizeof *view->top.now);
    view->top.before = calloc(1, sizeof *view->top.before);
    if (rc == 0 && (!view->top.now || !view->top.before))
        rc = rm_ctl_complain(RM_CTL_FAILED, "no memory for a view");
    if (rc == 0) {
        if (view->client.timeout_ns == 0 || view->client.timeout_ns > ANSWER_NS)
            view->client.timeout_ns = ANSWER_NS;
        show_message(view, "waiting for the experiment's status");
        setlocale(LC_CTYPE, "");
        SCREEN *screen = rm_top_terminal_known() ? newterm(NULL, stdout, stdin) : NULL;
        if (!screen) {
            rc = rm_ctl_complain(RM_CTL_FAILED, "the terminal \"%s\" is not known",
                                 getenv("TERM") ? getenv("TERM") : "");
        } else {
            cbreak();
            noecho();
            keypad(stdscr, TRUE);
            curs_set(0);
            rm_top_colours();
            loop(view);
            endwin();
            delscreen(screen);
        }
    }
    rm_ctl_client_close(&view->client);
    rm_curve_close(&view->top.curve);
    free(view->top.now);
    free(view->top.before);
    free(view);
    return rc;
}
