#include "daemon/web/server.h"

#include "actor/worlds/sandbox.h"
#include "daemon/web/pages.h"
#include "shm/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Files of page/, in the program. */
#define FILE_OF(name)                                                                              \
    extern const char _binary_##name##_start[], _binary_##name##_end[] /* of the linker */
FILE_OF(index_html);
FILE_OF(login_html);
FILE_OF(web_css);
FILE_OF(web_js);
FILE_OF(login_js);

struct connection {
    int fd;
    uint64_t since_ns;
    bool asked; /* its question waits for an answer */
    struct connection *next;
};

struct request {
    struct MHD_Connection *connection;
    struct connection *of;
    const struct route *route;
    struct rm_web_question question;
    size_t body_bytes;
    struct rm_web_answer answer;
    bool answered;
    struct request *next;
};

struct server {
    struct rm_server_options *options;
    struct rm_web_pages pages; /* of the caller's thread */
    struct MHD_Daemon *http;
    char cookie[32]; /* its name: cookies of one host do not know ports */
    int wake;        /* eventfd: there is a question, or a first connection */
    pthread_mutex_t lock;
    struct connection *connections;
    struct request *questions; /* in their order */
    bool ending;               /* no more questions */
};

struct route {
    const char *path;
    const char *method;
    bool open; /* without a session or token */
    const char *type;
    const char *start, *end; /* a file of page/ */
    const char *file;        /* a file of RM_SERVER_DYGRAPHS */
    enum rm_web_page page;   /* else */
    bool login;
};

#define JS  "text/javascript; charset=utf-8"
#define CSS "text/css; charset=utf-8"

static const struct route routes[] = {
    {.path = "/",
     .method = "GET",
     .type = "text/html; charset=utf-8",
     .start = _binary_index_html_start,
     .end = _binary_index_html_end},
    {.path = "/web.css",
     .method = "GET",
     .open = true,
     .type = CSS,
     .start = _binary_web_css_start,
     .end = _binary_web_css_end},
    {.path = "/web.js",
     .method = "GET",
     .type = JS,
     .start = _binary_web_js_start,
     .end = _binary_web_js_end},
    {.path = "/login.js",
     .method = "GET",
     .open = true,
     .type = JS,
     .start = _binary_login_js_start,
     .end = _binary_login_js_end},
    {.path = "/dygraph.js", .method = "GET", .type = JS, .file = "dygraph.min.js"},
    {.path = "/dygraph.css", .method = "GET", .type = CSS, .file = "dygraph.min.css"},
    {.path = "/metrics", .method = "GET", .page = RM_PAGE_METRICS},
    {.path = "/api/runs", .method = "GET", .page = RM_PAGE_RUNS},
    {.path = "/api/run", .method = "GET", .page = RM_PAGE_RUN},
    {.path = "/api/curves", .method = "GET", .page = RM_PAGE_CURVES},
    {.path = "/api/control", .method = "POST", .page = RM_PAGE_COMMAND},
    {.path = "/login", .method = "POST", .open = true, .login = true},
};

static const struct route login_page = {.type = "text/html; charset=utf-8",
                                        .start = _binary_login_html_start,
                                        .end = _binary_login_html_end};

/* With every answer. Nothing comes from other hosts, runs from within the page, or is framed. */
static const char *const heads[][2] = {
    {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "
                                "connect-src 'self'; img-src 'self' data:; "
                                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
    {"Connection", "close"},
};

/* --- answers ---------------------------------------------------------------------------------- */

static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status,
                                     const char *type, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < COUNT(heads); i++)
        MHD_add_response_header(response, heads[i][0], heads[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    const enum MHD_Result rc = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return rc;
}

static struct MHD_Response *of_text(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response = of_text(text);
    if (response && status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    return send_response(connection, status, "text/plain; charset=utf-8", response);
}

static enum MHD_Result send_file(struct MHD_Connection *connection, const struct route *route,
                                 unsigned status)
{
    char path[128];
    struct stat is;
    if (route->start)
        return send_response(connection, status, route->type,
                             MHD_create_response_from_buffer((size_t)(route->end - route->start),
                                                             (void *)route->start,
                                                             MHD_RESPMEM_PERSISTENT));
    snprintf(path, sizeof path, "%s/%s", RM_SERVER_DYGRAPHS, route->file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) < 0 || !S_ISREG(is.st_mode)) {
        if (fd >= 0)
            close(fd);
        return send_response(connection, status, route->type, of_text("")); /* plain curves */
    }
    return send_response(connection, MHD_HTTP_OK, route->type,
                         MHD_create_response_from_fd((uint64_t)is.st_size, fd));
}

/* The body is the token. */
static enum MHD_Result log_in(struct server *server, struct request *request)
{
    char cookie[160];
    struct rm_web_guard *guard = &server->options->guard;
    if (guard->open || !rm_web_guard_equal(guard->token, request->question.body))
        return refuse(request->connection, MHD_HTTP_FORBIDDEN, "this is not the token\n");
    const char *session = rm_web_guard_begin(guard);
    struct MHD_Response *response = session ? of_text("") : NULL;
    if (!response)
        return MHD_NO;
    snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", server->cookie,
             session);
    MHD_add_response_header(response, "Set-Cookie", cookie);
    return send_response(request->connection, MHD_HTTP_NO_CONTENT, "text/plain", response);
}

/* --- the head of a request -------------------------------------------------------------------- */

struct head {
    const char *host, *origin, *authorization, *own, *site, *length, *encoding;
    unsigned hosts;
};

static enum MHD_Result read_head(void *to, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct head *head = to;
    const struct {
        const char *name;
        const char **value;
    } fields[] = {
        {"Host", &head->host},
        {"Origin", &head->origin},
        {"Authorization", &head->authorization},
        {"X-Ringmaster", &head->own},
        {"Sec-Fetch-Site", &head->site},
        {"Content-Length", &head->length},
        {"Transfer-Encoding", &head->encoding},
    };
    (void)kind;
    for (size_t i = 0; i < COUNT(fields); i++)
        if (!strcasecmp(name, fields[i].name))
            *fields[i].value = value ? value : "";
    head->hosts += !strcasecmp(name, "Host");
    return MHD_YES;
}

/* Why a change is refused; NULL: it comes from this program's page. */
static const char *why_no_change(const struct head *head)
{
    if (!head->own || strcmp(head->own, "1") != 0)
        return "a change needs the header X-Ringmaster: 1\n";
    if (!rm_web_guard_origin(head->origin, head->host))
        return "a change needs an Origin that is this host\n";
    if (head->site && strcmp(head->site, "same-origin") != 0)
        return "changes are accepted only from this page\n";
    return NULL;
}

static const struct route *route_to(const char *path, const char *method, bool *other_method)
{
    *other_method = false;
    for (size_t i = 0; i < COUNT(routes); i++) {
        if (strcmp(routes[i].path, path) != 0)
            continue;
        if (!strcmp(routes[i].method, method))
            return &routes[i];
        *other_method = true;
    }
    return NULL;
}

/* Checks the head. MHD_YES with *route NULL: refused, and the answer is queued. */
static enum MHD_Result admit(struct server *server, struct MHD_Connection *connection,
                             const char *path, const char *method, const struct route **route)
{
    struct head head = {.host = NULL};
    const struct rm_web_guard *guard = &server->options->guard;
    bool other_method;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, read_head, &head);
    *route = NULL;
    if (head.hosts != 1 || !rm_web_guard_host(guard, head.host))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "this name of the host is not allowed; ringmaster-web --host allows more\n");
    const struct route *to = route_to(path, method, &other_method);
    if (!to)
        return refuse(connection, other_method ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND,
                      other_method ? "GET only\n" : "there is no such page\n");
    const char *cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, server->cookie);
    if (!to->open && !guard->open && !rm_web_guard_session(guard, cookie) &&
        !rm_web_guard_bearer(guard, head.authorization))
        return !strcmp(path, "/") ? send_file(connection, &login_page, MHD_HTTP_UNAUTHORIZED)
                                  : refuse(connection, MHD_HTTP_UNAUTHORIZED,
                                           "give the token: Authorization: Bearer TOKEN\n");
    const bool post = !strcmp(method, "POST");
    const char *why = post ? why_no_change(&head) : NULL;
    if (!why && to->page == RM_PAGE_COMMAND && !server->options->control)
        why = "ringmaster-web was started without --allow-control\n";
    if (why)
        return refuse(connection, MHD_HTTP_FORBIDDEN, why);
    if (post && (!head.length || head.encoding))
        return refuse(connection, MHD_HTTP_LENGTH_REQUIRED, "the body's length is missing\n");
    if (head.encoding || (head.length && strtoull(head.length, NULL, 10) > RM_WEB_BODY_MAX))
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long\n");
    *route = to;
    return MHD_YES;
}

static bool wants_openmetrics(struct MHD_Connection *connection)
{
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
    return accept && strstr(accept, "application/openmetrics-text");
}

static void read_question(struct request *request)
{
    const char *name =
        MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, "name");
    request->question.page = request->route->page;
    if (request->route->page == RM_PAGE_METRICS && !wants_openmetrics(request->connection))
        request->question.page = RM_PAGE_PLAIN_METRICS;
    else if (request->route->page == RM_PAGE_RUN || request->route->page == RM_PAGE_CURVES)
        snprintf(request->question.name, sizeof request->question.name, "%s", name ? name : "");
}

/* --- the thread that serves ------------------------------------------------------------------- */

static void wake(const struct server *server)
{
    const uint64_t one = 1;
    (void)!write(server->wake, &one, sizeof one);
}

static struct connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* Puts the question last, and lets the connection wait. False: the program ends. */
static bool ask(struct server *server, struct request *request)
{
    pthread_mutex_lock(&server->lock);
    if (server->ending) {
        pthread_mutex_unlock(&server->lock);
        return false;
    }
    MHD_suspend_connection(request->connection);
    struct request **last = &server->questions;
    while (*last)
        last = &(*last)->next;
    *last = request;
    if (request->of)
        request->of->asked = true;
    pthread_mutex_unlock(&server->lock);
    wake(server);
    return true;
}

static enum MHD_Result finish(struct server *server, struct request *request)
{
    const struct route *route = request->route;
    if (route->login)
        return log_in(server, request);
    if (route->start || route->file)
        return send_file(request->connection, route, MHD_HTTP_OK);
    if (!request->answered) {
        read_question(request);
        return ask(server, request) ? MHD_YES : MHD_NO;
    }
    char *body = request->answer.body;
    request->answer.body = NULL;
    if (!body)
        return refuse(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not now\n");
    return send_response(
        request->connection, request->answer.status, request->answer.type,
        MHD_create_response_from_buffer(request->answer.bytes, body, MHD_RESPMEM_MUST_FREE));
}

static enum MHD_Result on_request(void *self, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *bytes, void **state)
{
    struct server *server = self;
    struct request *request = *state;
    (void)version;
    if (!request) {
        const struct route *route;
        const enum MHD_Result rc = admit(server, connection, path, method, &route);
        if (rc == MHD_NO || !route)
            return rc;
        request = calloc(1, sizeof *request);
        if (!request)
            return MHD_NO;
        request->connection = connection;
        request->of = connection_of(connection);
        request->route = route;
        *state = request;
        return MHD_YES;
    }
    if (*bytes) {
        if (*bytes > RM_WEB_BODY_MAX - request->body_bytes)
            return MHD_NO;
        memcpy(request->question.body + request->body_bytes, data, *bytes);
        request->body_bytes += *bytes;
        *bytes = 0;
        return MHD_YES;
    }
    return finish(server, request);
}

static void on_completed(void *self, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    struct request *request = *state;
    (void)self, (void)connection, (void)code;
    if (request)
        free(request->answer.body);
    free(request);
    *state = NULL;
}

static void on_connection(void *self, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = self;
    pthread_mutex_lock(&server->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = calloc(1, sizeof *c);
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (c && info) {
            *c = (struct connection){info->connect_fd, rm_now_ns(), false, server->connections};
            server->connections = c;
            *context = c;
        } else {
            free(c);
        }
    } else if (*context) {
        struct connection **at = &server->connections;
        while (*at && *at != *context)
            at = &(*at)->next;
        if (*at)
            *at = (*at)->next;
        free(*context);
        *context = NULL;
    }
    pthread_mutex_unlock(&server->lock);
    wake(server);
}

/* --- the caller's thread ---------------------------------------------------------------------- */

/* Ends connections that take longer than a request may; their descriptors are open as long as they
 * are in the list. Returns whether there are any. */
static bool end_slow(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    const uint64_t now = rm_now_ns(); /* no connection of the list is younger */
    for (struct connection *c = server->connections; c; c = c->next)
        if (!c->asked && now - c->since_ns > RM_SERVER_TIME_S * RM_NS_PER_S)
            shutdown(c->fd, SHUT_RDWR);
    const bool any = server->connections;
    pthread_mutex_unlock(&server->lock);
    return any;
}

static struct request *next_question(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    struct request *request = server->questions;
    if (request)
        server->questions = request->next;
    pthread_mutex_unlock(&server->lock);
    return request;
}

static void answer_all(struct server *server, bool ending)
{
    for (struct request *request; (request = next_question(server));) {
        if (!ending)
            rm_web_answer(&server->pages, &request->question, &request->answer);
        pthread_mutex_lock(&server->lock);
        request->answered = true;
        if (request->of) { /* time for the answer to be read */
            request->of->asked = false;
            request->of->since_ns = rm_now_ns();
        }
        pthread_mutex_unlock(&server->lock);
        MHD_resume_connection(request->connection);
    }
}

static void serve(struct server *server, int signals)
{
    struct pollfd ready[] = {{.fd = signals, .events = POLLIN},
                             {.fd = server->wake, .events = POLLIN}};
    while (!(ready[0].revents & POLLIN)) {
        uint64_t count;
        const bool any = end_slow(server);
        if (poll(ready, 2, any ? 1000 : -1) < 0 && errno != EINTR)
            return;
        if (ready[1].revents & POLLIN)
            (void)!read(server->wake, &count, sizeof count);
        answer_all(server, false);
    }
}

/* --- listening -------------------------------------------------------------------------------- */

static int listen_unix(const struct rm_server_options *o, struct rm_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat is;
    if (strlen(o->socket) >= sizeof address.sun_path)
        return rm_fail(error, -ENAMETOOLONG, "%s: longer than the %zu bytes of a socket's path",
                       o->socket, sizeof address.sun_path - 1);
    memcpy(address.sun_path, o->socket, strlen(o->socket) + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rm_fail(error, -errno, "socket: %s", strerror(errno));
    /* One that a killed process left refuses connections. */
    if (lstat(o->socket, &is) == 0 && S_ISSOCK(is.st_mode) && is.st_uid == geteuid() &&
        connect(fd, (struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED)
        unlink(o->socket);
    const mode_t mask = umask(0177);
    const int rc = bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
                           listen(fd, RM_SERVER_CONNECTIONS) < 0
                       ? rm_fail(error, -errno, "%s: %s", o->socket, strerror(errno))
                       : 0;
    umask(mask);
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

static int listen_loopback(struct rm_server_options *o, struct rm_error *error)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)o->port)};
    const bool six = strchr(o->address, ':');
    struct sockaddr *address = six ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    socklen_t bytes = six ? sizeof v6 : sizeof v4;
    const int on = 1;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    v6.sin6_addr = in6addr_loopback;
    const int fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return rm_fail(error, -errno, "socket: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, address, bytes) < 0 || listen(fd, RM_SERVER_CONNECTIONS) < 0 ||
        getsockname(fd, address, &bytes) < 0) {
        const int rc =
            rm_fail(error, -errno, "%s port %d: %s", o->address, o->port, strerror(errno));
        close(fd);
        return rc;
    }
    o->port = ntohs(six ? v6.sin6_port : v4.sin_port);
    return fd;
}

static void print_place(const struct rm_server_options *o, bool token)
{
    const bool six = strchr(o->address, ':');
    if (o->socket)
        printf("listening at %s\n", o->socket);
    else
        printf("listening at http://%s%s%s:%d/%s%s\n", six ? "[" : "", o->address, six ? "]" : "",
               o->port, token ? "#" : "", token ? o->guard.token : "");
    fflush(stdout);
}

/* From here on the process opens nothing for writing but GPUs, and removes its own socket. */
static int confine(const struct rm_server_options *o, struct rm_error *error)
{
    char folder[sizeof((struct sockaddr_un *)0)->sun_path] = ".";
    const char *end = o->socket ? strrchr(o->socket, '/') : NULL;
    if (end)
        snprintf(folder, sizeof folder, "%.*s", (int)(end - o->socket) + 1, o->socket);
    const int rc = rm_sandbox_reading(o->socket ? folder : NULL, "/dev/nvidia*", error);
    if (rc == 0)
        fputs("ringmaster-web: Landlock is not available: files can be written as far as their "
              "permissions allow\n",
              stderr);
    return rc < 0 ? rc : 0;
}

static int start(struct server *server, int fd, struct rm_error *error)
{
    server->http = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, server,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, RM_SERVER_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)RM_SERVER_TIME_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)RM_SERVER_HEAD_BYTES,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
    return server->http ? 0 : rm_fail(error, -EIO, "libmicrohttpd does not start");
}

int rm_server_run(struct rm_server_options *options, struct rm_error *error)
{
    static struct server server; /* large */
    sigset_t ends;
    const bool printed = !options->socket && !options->guard.token[0];
    server = (struct server){.options = options, .pages.control = options->control};
    options->guard.open = options->socket != NULL;
    if (printed) {
        const int rc = rm_web_guard_secret(options->guard.token, error);
        if (rc)
            return rc;
    }
    const int fd = options->socket ? listen_unix(options, error) : listen_loopback(options, error);
    if (fd < 0)
        return fd;
    snprintf(server.cookie, sizeof server.cookie, "ringmaster-%d", options->port);
    pthread_mutex_init(&server.lock, NULL);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before there is another thread */
    signal(SIGPIPE, SIG_IGN);
    json_object_seed(0);
    const int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    server.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = signals < 0 || server.wake < 0
                 ? rm_fail(error, -errno, "signalfd, eventfd: %s", strerror(errno))
                 : confine(options, error);
    if (rc == 0)
        rc = start(&server, fd, error);
    if (rc == 0) {
        rm_gpus_open(&server.pages.gpus);
        print_place(options, printed);
        serve(&server, signals);
        MHD_quiesce_daemon(server.http);
        pthread_mutex_lock(&server.lock);
        server.ending = true;
        pthread_mutex_unlock(&server.lock);
        answer_all(&server, true);
        MHD_stop_daemon(server.http);
    }
    close(fd);
    if (options->socket)
        unlink(options->socket);
    rm_web_pages_free(&server.pages);
    return rc;
}
