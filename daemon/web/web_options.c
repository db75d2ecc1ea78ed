#include "daemon/web/web_options.h"

#include "daemon/ctl/mdoc.h"
#include "daemon/web/gpus.h"
#include "daemon/web/openmetrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef int read_fn(struct rm_web_options *options, const char *value, struct rm_error *error);

struct option {
    const char *name, *value; /* NULL: it takes none */
    const char *doc, *more;   /* in --help; what the man page has beside it */
    read_fn *read;
};

static int read_port(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    char *end;
    const long port = strtol(value, &end, 10);
    if (end == value || *end || port < 0 || port > 65535)
        return rm_fail(error, -EINVAL, "--port \"%s\": give 0 to 65535", value);
    o->server.port = (int)port;
    return 0;
}

static int read_address(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    if (strcmp(value, "127.0.0.1") != 0 && strcmp(value, "::1") != 0)
        return rm_fail(
            error, -EINVAL,
            "--address \"%s\": give 127.0.0.1 or ::1; other hosts come through a proxy or "
            "a tunnel",
            value);
    o->server.address = value;
    return 0;
}

static int read_socket(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)error;
    o->server.socket = value;
    return 0;
}

static int read_token_file(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)error;
    o->token_file = value;
    return 0;
}

static int read_host(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    struct rm_web_guard *guard = &o->server.guard;
    if (guard->hosts == RM_WEB_GUARD_HOSTS || !*value)
        return rm_fail(error, -EINVAL, "--host \"%s\": give up to %d names", value,
                       RM_WEB_GUARD_HOSTS);
    guard->host[guard->hosts++] = value;
    return 0;
}

static int read_control(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)value, (void)error;
    o->server.control = true;
    return 0;
}

static int read_generate(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)error;
    o->generate = value;
    return 0;
}

static int read_help(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)value, (void)error;
    o->help = true;
    return 0;
}

static int read_version(struct rm_web_options *o, const char *value, struct rm_error *error)
{
    (void)value, (void)error;
    o->version = true;
    return 0;
}

static const struct option options[] = {
    {"port", "PORT", "Listens there (default 8264); 0: any free port.", NULL, read_port},
    {"address", "ADDRESS", "Listens at 127.0.0.1 (the default) or ::1.", NULL, read_address},
    {"socket", "PATH", "Listens at a Unix socket of mode 0600, without a token.", NULL,
     read_socket},
    {"token-file", "PATH", "Has the token; made with a new one if it is missing.",
     "It must not be readable by other users. Without this option a token is made for this process "
     "and printed as part of the page's address.",
     read_token_file},
    {"host", "NAME", "Answers to this name of the host, too; may be given again.",
     "Always allowed are `localhost`, `127.0.0.1` and `[::1]`. A proxy that keeps the name that "
     "its "
     "clients use needs it here.",
     read_host},
    {"allow-control", NULL, "Lets the page pause, resume, set, evaluate, checkpoint, stop.",
     "The experiment decides by the user of this process, as for `ringctl`.", read_control},
    {"generate", "WHAT", "Prints man, bash (completion) or metrics (reference), and exits.", NULL,
     read_generate},
    {"help", NULL, "Prints help and exits.", NULL, read_help},
    {"version", NULL, "Prints the version and exits.", NULL, read_version},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct option *find(const char *name, size_t length)
{
    for (size_t i = 0; i < OPTIONS; i++)
        if (strlen(options[i].name) == length && !strncmp(options[i].name, name, length))
            return &options[i];
    return NULL;
}

int rm_web_options_read(struct rm_web_options *o, int argc, char **argv, struct rm_error *error)
{
    *o = (struct rm_web_options){.server = {.address = "127.0.0.1", .port = 8264}};
    for (int i = 1; i < argc; i++) {
        const char *name = !strncmp(argv[i], "--", 2) ? argv[i] + 2 : "";
        const size_t length = strcspn(name, "=");
        const struct option *option = find(name, length);
        const char *value = option && name[length] ? name + length + 1 : NULL;
        if (!option || (value && !option->value))
            return rm_fail(error, -EINVAL, "\"%s\": there is no such option; see --help", argv[i]);
        if (option->value && !value)
            value = i + 1 < argc ? argv[++i] : NULL;
        if (option->value && !value)
            return rm_fail(error, -EINVAL, "--%s: give %s", option->name, option->value);
        const int rc = option->read(o, value, error);
        if (rc)
            return rc;
    }
    if (o->server.socket && o->token_file)
        return rm_fail(error, -EINVAL,
                       "give either --socket or --token-file: a Unix socket has no "
                       "token");
    return 0;
}

void rm_web_options_help(FILE *out)
{
    fputs("Usage: ringmaster-web [OPTION]...\n"
          "Shows the experiments of this host to a browser, and to Prometheus at /metrics.\n\n",
          out);
    for (size_t i = 0; i < OPTIONS; i++) {
        char name[40];
        snprintf(name, sizeof name, "--%s%s%s", options[i].name, options[i].value ? " " : "",
                 options[i].value ? options[i].value : "");
        fprintf(out, "  %-19s %s\n", name, options[i].doc);
    }
    fputs("\nringmaster-web(1) has the rest; docs/metrics.md the metrics.\n", out);
}

/* --- generated -------------------------------------------------------------------------------- */

static void write_man(FILE *out)
{
    rm_mdoc_head(out, "ringmaster-web", "1", "experiments in a browser and in Prometheus");
    rm_mdoc_line(out, ".Sh SYNOPSIS\n.Nm\n.Op Ar option ...\n.Sh DESCRIPTION\n.Nm");
    rm_mdoc_text(
        out, "serves a page that shows the running experiments of this host, and their metrics for "
             "Prometheus at `/metrics`. It finds experiments and speaks to them as `ringctl` does, "
             "so it "
             "shows those that its user may see, and it writes to none of them unless "
             "`--allow-control` is "
             "given.\n\nIt listens on loopback and asks for a token, because other users of the "
             "host can "
             "reach loopback as well; or at a Unix socket that only its user can open. A browser "
             "exchanges "
             "the token once for a cookie; Prometheus sends it as `Authorization: Bearer TOKEN`. "
             "Experiments are asked at most once a second.\n\nThe options are:");
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (size_t i = 0; i < OPTIONS; i++) {
        rm_mdoc_line(out, options[i].value ? ".It Fl -%s Ar %s" : ".It Fl -%s", options[i].name,
                     options[i].value);
        rm_mdoc_text(out, options[i].doc);
        if (options[i].more)
            rm_mdoc_text(out, options[i].more);
    }
    rm_mdoc_line(out, ".El\n.Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev RINGMASTER_RUNTIME_DIR");
    rm_mdoc_text(out, "Where the control sockets of experiments are, as for `ringctl`.");
    rm_mdoc_line(out, ".It Ev " RM_GPUS_ENVIRONMENT);
    rm_mdoc_text(out, "NVIDIA's library for figures of GPUs, in place of `libnvidia-ml.so.1`.");
    rm_mdoc_line(out, ".El\n.Sh FILES\n.Bl -tag -width Ds\n.It Pa " RM_SERVER_DYGRAPHS);
    rm_mdoc_text(out,
                 "dygraphs, for curves that can be zoomed; without it the page draws plain ones.");
    rm_mdoc_line(out, ".It Pa /var/lib/ringmaster-web/token");
    rm_mdoc_text(out, "The token of the service `ringmaster-web.service`.");
    rm_mdoc_line(out, ".El\n.Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0");
    rm_mdoc_text(out, "Ended by SIGINT or SIGTERM.");
    rm_mdoc_line(out, ".It 1");
    rm_mdoc_text(out, "It cannot listen, or the token's file is not as it should be.");
    rm_mdoc_line(out, ".It 2");
    rm_mdoc_text(out, "Wrong command line.");
    rm_mdoc_line(out, ".El\n.Sh SEE ALSO\n.Xr ringctl 1 ,\n.Xr ringmaster-metrics 7 ,\n.Xr "
                      "ringmasterd 8");
}

static void write_bash(FILE *out)
{
    fputs(
        "# bash completion for ringmaster-web. Generated by 'ringmaster-web --generate bash'; not "
        "edited by hand.\n# shellcheck shell=bash\n\n_ringmaster_web() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "    case $before in\n"
        "    --socket | --token-file) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
        "    --address) mapfile -t COMPREPLY < <(compgen -W '127.0.0.1 ::1' -- \"$word\") ;;\n"
        "    --generate) mapfile -t COMPREPLY < <(compgen -W 'man bash metrics' -- \"$word\") ;;\n"
        "    --port | --host) COMPREPLY=() ;;\n"
        "    *) mapfile -t COMPREPLY < <(compgen -W '",
        out);
    for (size_t i = 0; i < OPTIONS; i++)
        fprintf(out, "%s--%s", i ? " " : "", options[i].name);
    fputs("' -- \"$word\") ;;\n    esac\n}\ncomplete -F _ringmaster_web ringmaster-web\n", out);
}

int rm_web_options_generate(const char *what, FILE *out, struct rm_error *error)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } pages[] = {{"man", write_man}, {"bash", write_bash}, {"metrics", rm_openmetrics_document}};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (!strcmp(pages[i].name, what)) {
            pages[i].write(out);
            return 0;
        }
    return rm_fail(error, -EINVAL, "--generate \"%s\": give man, bash or metrics", what);
}
