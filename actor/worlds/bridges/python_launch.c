#include "actor/worlds/bridges/python_launch.h"

#include "shm/base/file.h"
#include "shm/base/plugin_file.h"
#include "shm/base/severity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define PATHS_MAX 128

/* --- where things are ------------------------------------------------------------------------ */

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The first `name` on the PATH that can be started; false: none. */
static bool find_on_path(const char *name, char *path, size_t size)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        const int n = (int)strcspn(at, ":");
        if (n > 0 && snprintf(path, size, "%.*s/%s", n, at, name) < (int)size && is_file(path) &&
            access(path, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

static int find_interpreter(const char *named, char path[PATH_MAX], struct rm_error *error)
{
    const char *venv = getenv("VIRTUAL_ENV");
    char start[3] = "", here[PATH_MAX / 2];
    if (named[0] == '/')
        snprintf(path, PATH_MAX, "%s", named);
    else if (named[0] &&
             strchr(named, '/')) /* not resolved: its place says which packages it has */
        snprintf(path, PATH_MAX, "%s/%s", getcwd(here, sizeof here) ? here : ".", named);
    else if (!named[0] && venv && venv[0])
        snprintf(path, PATH_MAX, "%s/bin/python", venv);
    else if (!find_on_path(named[0] ? named : "python3", path, PATH_MAX))
        return rm_fail(error, -EINVAL,
                       "world.interpreter: there is no %s on the PATH; give the path of a Python "
                       "interpreter that has NumPy",
                       named[0] ? named : "python3");
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rm_fail(error, -EINVAL, "world.interpreter: %s: %s", path, strerror(errno));
    const ssize_t n = read(fd, start, 2);
    close(fd);
    if (n == 2 && strncmp(start, "#!", 2) == 0)
        return rm_fail(error, -EINVAL,
                       "world.interpreter: %s is a script that starts an interpreter; give the "
                       "interpreter's own path, its sys.executable",
                       path);
    if (n < 0)
        return rm_fail(error, -EINVAL, "world.interpreter: %s: %s", path, strerror(errno));
    return 0;
}

/* The folder of the package `ringmaster`: beside what this program was built from, or installed. */
static int find_package(char path[PATH_MAX], struct rm_error *error)
{
    static const char *const below[] = {"python", "share/ringmaster/python"};
    const char *chosen = getenv("RINGMASTER_PYTHON");
    char here[PATH_MAX - 64], worker[PATH_MAX + 32];
    if (chosen && chosen[0]) {
        snprintf(path, PATH_MAX, "%s", chosen);
        return 0;
    }
    const ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    here[n > 0 ? n : 0] = '\0';
    for (char *slash; (slash = strrchr(here, '/'));) {
        *slash = '\0';
        for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
            snprintf(path, PATH_MAX, "%s/%s", here, below[i]);
            snprintf(worker, sizeof worker, "%s/ringmaster/worker.py", path);
            if (is_file(worker))
                return 0;
        }
    }
    return rm_fail(error, -ENOENT,
                   "ringmaster's Python package is not beside this program; set RINGMASTER_PYTHON "
                   "to the folder that has it");
}

/* --- temporary folders ----------------------------------------------------------------------- */

#define FOLDER    "ringmaster-python-" /* what begins so in TMPDIR is removed: a name of its own */
#define HOLDS_MAX 8

/* Opens a temporary folder and locks it as its owner; the lock ends with the process. -1: another
 * process has it, or it is gone. */
static int hold(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
        st.st_uid == geteuid() && rm_file_is_at(fd, path))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Removes what processes that were killed have left. */
static void remove_ownerless(const char *above)
{
    char path[PATH_MAX];
    DIR *all = opendir(above);
    /* cppcheck-suppress readdirCalled ; one thread, and glibc's is safe with a stream of one's own
     */
    for (struct dirent *one; all && (one = readdir(all));) {
        if (strncmp(one->d_name, FOLDER, strlen(FOLDER)) != 0 ||
            snprintf(path, sizeof path, "%s/%s", above, one->d_name) >= (int)sizeof path)
            continue;
        const int fd = hold(path);
        if (fd < 0)
            continue;
        rm_file_remove_all(path);
        close(fd);
    }
    if (all)
        closedir(all);
}

/* Makes one of its own. A process that starts at the same moment may take a new folder for an
 * ownerless one. Where a file system has no locks, none is ever ownerless. */
static int make_held(struct rm_python_launching *l, const char *above, struct rm_error *error)
{
    char made[PATH_MAX];
    l->held = -1;
    for (int tries = 0; l->held < 0 && tries < HOLDS_MAX; tries++) {
        if (tries > 0)
            (void)rmdir(made);
        snprintf(made, sizeof made, "%s/" FOLDER "XXXXXX", above);
        if (!mkdtemp(made))
            return rm_fail(error, -errno, "%s: %s", made, strerror(errno));
        l->held = hold(made);
    }
    return realpath(made, l->folder) ? 0 : rm_fail(error, -errno, "%s: %s", made, strerror(errno));
}

static int make_folder(struct rm_python_launching *l, const char *directory, struct rm_error *error)
{
    const char *tmp = getenv("TMPDIR");
    char above[PATH_MAX - 32];
    if (directory) {
        snprintf(above, sizeof above, "%s/tmp", directory);
        snprintf(l->above, sizeof l->above, "%s", above);
        if (mkdir(above, 0755) < 0 && errno != EEXIST)
            return rm_fail(error, -errno, "%s: %s", above, strerror(errno));
    } else {
        snprintf(above, sizeof above, "%s", tmp && tmp[0] ? tmp : "/tmp");
    }
    remove_ownerless(above);
    return make_held(l, above, error);
}

/* --- the environment ------------------------------------------------------------------------- */

/* A variable of a worker. `kept`: a value that the user has set stays. */
struct variable {
    const char *name, *value;
    bool kept;
};

static bool names(const char *entry, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static int make_environment(struct rm_python_launching *l, const struct rm_python_manner *manner,
                            const char *package, const char *stepper, struct rm_error *error)
{
    const char *before = getenv("PYTHONPATH"), *modules = manner->modules;
    const bool confined = manner->confined;
    char path[3 * PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s%s%s", package, modules[0] ? ":" : "", modules,
             before && before[0] ? ":" : "", before ? before : "");
    const struct variable all[] = {
        {"PYTHONPATH", path, false},
        {"RINGMASTER_STEPPER", stepper[0] ? stepper : NULL, false},
        {"TMPDIR", l->folder, false},
        {"PYTHONHASHSEED", "0", true}, /* the order of sets is that of every other worker */
        {"OMP_NUM_THREADS", "1", true},
        {"OPENBLAS_NUM_THREADS", "1", true},
        {"MKL_NUM_THREADS", "1", true},
        {"NUMEXPR_NUM_THREADS", "1", true},
        {"MPLCONFIGDIR", l->folder, true},
        {"NUMBA_CACHE_DIR", l->folder, true},
        {"XDG_CACHE_HOME", confined ? l->folder : NULL, false},
        {"PYTHONDONTWRITEBYTECODE", confined ? "1" : NULL, false},
        {"SDL_VIDEODRIVER", getenv("DISPLAY") || getenv("WAYLAND_DISPLAY") ? NULL : "dummy", true},
        {"SDL_AUDIODRIVER", "dummy", true},
        {"PYGAME_HIDE_SUPPORT_PROMPT", "1", true},
    };
    const size_t count = sizeof all / sizeof *all;
    size_t n = 0, used = 0;

    while (environ[n])
        n++;
    l->environment = calloc(n + count + 1, sizeof *l->environment);
    if (!l->environment)
        return rm_fail(error, -ENOMEM, "no memory for the environment of a Python worker");
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t v = 0; v < count; v++)
            replaced |= all[v].value && !all[v].kept && names(environ[i], all[v].name);
        if (!replaced && !(l->environment[used++] = strdup(environ[i])))
            return rm_fail(error, -ENOMEM, "no memory for the environment of a Python worker");
    }
    for (size_t v = 0; v < count; v++) {
        if (!all[v].value || (all[v].kept && getenv(all[v].name)))
            continue;
        if (asprintf(&l->environment[used], "%s=%s", all[v].name, all[v].value) < 0) {
            l->environment[used] = NULL;
            return rm_fail(error, -ENOMEM, "no memory for the environment of a Python worker");
        }
        used++;
    }
    return 0;
}

/* --- what it may read ------------------------------------------------------------------------ */

struct paths {
    const char *path[PATHS_MAX + 1]; /* ends with NULL; owned */
    size_t count;
};

static void add_path(struct paths *paths, const char *path)
{
    if (path[0] == '/' && path[1] && paths->count < PATHS_MAX)
        paths->path[paths->count++] = strdup(path);
}

/* The folder two above a file: the prefix of an interpreter, whose folder is bin/. */
static void add_prefix(struct paths *paths, const char *interpreter)
{
    char prefix[PATH_MAX];
    snprintf(prefix, sizeof prefix, "%s", interpreter);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(prefix, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
    add_path(paths, prefix);
}

/* Folders that a line of a file names: `key = /folder` where there is a key, else `/folder`. */
static void add_lines(struct paths *paths, const char *file, const char *key)
{
    char line[PATH_MAX];
    FILE *in = fopen(file, "re");
    while (in && fgets(line, sizeof line, in)) {
        const char *at = line;
        line[strcspn(line, "\r\n")] = '\0';
        if (key) {
            if (strncmp(at, key, strlen(key)) != 0)
                continue;
            at += strlen(key);
            at += strspn(at, " =");
        }
        add_path(paths, at);
    }
    if (in)
        fclose(in);
}

/* What environments refer to: the interpreter that a virtual one was made from, and folders of
 * packages that were installed to be edited. */
static void add_referred(struct paths *paths, const char *interpreter)
{
    char pattern[PATH_MAX], home[PATH_MAX];
    struct paths homes = {.count = 0};
    glob_t found;

    snprintf(pattern, sizeof pattern, "%.*s/../pyvenv.cfg",
             (int)(strrchr(interpreter, '/') - interpreter), interpreter);
    add_lines(&homes, pattern, "home");
    for (size_t i = 0; i < homes.count; i++) {
        snprintf(pattern, sizeof pattern, "%s/python3", homes.path[i]);
        add_prefix(paths, pattern);
        if (realpath(pattern, home))
            add_prefix(paths, home);
        free((char *)homes.path[i]);
    }
    snprintf(pattern, sizeof pattern, "%.*s/../lib/python3*/site-packages/*.pth",
             (int)(strrchr(interpreter, '/') - interpreter), interpreter);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_lines(paths, found.gl_pathv[i], NULL);
        globfree(&found);
    }
}

static void add_list(struct paths *paths, const char *list)
{
    char one[PATH_MAX];
    for (; list && *list; list += strcspn(list, ":"), list += *list == ':') {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(list, ":"), list);
        add_path(paths, one);
    }
}

static void collect(struct paths *paths, const struct rm_python_launching *l, const char *package,
                    const char *stepper, const char *modules)
{
    static const char *const of_system[] = {
        "/usr",
        "/lib",
        "/lib32",
        "/lib64",
        "/bin",
        "/sbin",
        "/opt",
        "/nix/store",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/fonts",
        "/etc/ssl",
        "/etc/mime.types",
        "/etc/passwd",
        "/etc/group",
        "/etc/nsswitch.conf",
        "/etc/host.conf",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/etc/gai.conf",
        "/etc/os-release",
        "/etc/debian_version",
        "/etc/alternatives",
        "/etc/python3",
        "/etc/python3.11",
        "/etc/machine-id",
        "/proc", /* what is not everybody's in it needs more than to be opened */
        "/sys/devices/system",
        "/sys/fs/cgroup",
        "/dev/urandom",
        "/dev/random",
        "/dev/zero"};
    const char *home = getenv("HOME");
    char real[PATH_MAX], path[PATH_MAX];

    for (size_t i = 0; i < sizeof of_system / sizeof *of_system; i++)
        add_path(paths, of_system[i]);
    add_prefix(paths, l->interpreter);
    add_referred(paths, l->interpreter);
    if (realpath(l->interpreter, real)) {
        add_prefix(paths, real);
        if (strcmp(real, l->interpreter) != 0)
            add_referred(paths, real);
    }
    if (home && home[0] && snprintf(path, sizeof path, "%s/.local/lib", home) < (int)sizeof path)
        add_path(paths, path);
    if (getcwd(path, sizeof path))
        add_path(paths, path);
    add_list(paths, getenv("PYTHONPATH"));
    add_path(paths, modules);
    add_path(paths, package);
    add_path(paths, stepper);
}

static int confine(struct rm_python_launching *l, const struct rm_python_manner *manner,
                   const char *package, const char *stepper, struct rm_error *error)
{
    struct paths readable = {.count = 0};
    char real[PATH_MAX];
    const char *executable[] = {l->interpreter, NULL, NULL, NULL};
    const char *lacks = NULL;
    size_t n = 1;

    if (realpath(l->interpreter, real) && strcmp(real, l->interpreter) != 0)
        executable[n++] = real;
    if (access("/lib64/ld-linux-x86-64.so.2", F_OK) == 0)
        executable[n++] = "/lib64/ld-linux-x86-64.so.2";
    collect(&readable, l, package, stepper, manner->modules);
    const struct rm_sandbox_program_needs needs = {.readable = readable.path,
                                                   .executable = executable,
                                                   .writable = l->folder,
                                                   .network = manner->network};
    int rc = rm_sandbox_program_prepare(&l->sandbox, &needs, &lacks, error);
    if (rc == 0 && lacks && manner->must)
        rc = rm_fail(error, -EPROTO, "actor.sandbox: \"on\", but %s", lacks);
    else if (rc == 0 && lacks)
        fprintf(stderr, RM_SEVERITY_NOTICE "sandbox: incomplete: %s\n", lacks);
    for (size_t i = 0; i < readable.count; i++)
        free((char *)readable.path[i]);
    return rc;
}

/* --- together -------------------------------------------------------------------------------- */

int rm_python_launching_prepare(struct rm_python_launching *l,
                                const struct rm_python_manner *manner, struct rm_error *error)
{
    char package[PATH_MAX], stepper[PATH_MAX];

    *l = (struct rm_python_launching){.sandbox.rules = -1};
    int rc = find_interpreter(manner->interpreter, l->interpreter, error);
    if (rc == 0)
        rc = find_package(package, error);
    if (rm_plugin_find("ringmaster-stepper.so", "RINGMASTER_STEPPER", "", stepper, NULL) < 0)
        stepper[0] = '\0'; /* the worker has the same loop in Python */
    if (rc == 0)
        rc = make_folder(l, manner->directory, error);
    if (rc == 0)
        rc = make_environment(l, manner, package, stepper, error);
    if (rc == 0 && manner->confined)
        rc = confine(l, manner, package, stepper, error);
    if (rc < 0) {
        rm_python_launching_free(l);
        return rc;
    }
    l->arguments[0] = l->interpreter;
    l->arguments[1] = (char *)"-m";
    l->arguments[2] = (char *)"ringmaster.worker";
    l->launch = (struct rm_python_launch){.arguments = l->arguments,
                                          .environment = l->environment,
                                          .sandbox = manner->confined ? &l->sandbox : NULL,
                                          .memory_limit = manner->memory_limit};
    return 0;
}

void rm_python_launching_free(struct rm_python_launching *l)
{
    if (l->folder[0]) {
        rm_file_remove_all(l->folder);
        close(l->held);
    }
    if (l->above[0])
        (void)rmdir(l->above); /* who is last */
    for (size_t i = 0; l->environment && l->environment[i]; i++)
        free(l->environment[i]);
    free(l->environment);
    rm_sandbox_program_free(&l->sandbox);
    *l = (struct rm_python_launching){.sandbox.rules = -1};
}
