#include "daemon/ctl/trial.h"

#include "config/traits.h"
#include "daemon/checkpoint_files.h"
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/interrupt.h"
#include "daemon/ctl/start_run.h"
#include "daemon/ctl/tool.h"
#include "shm/base/clock.h"
#include "shm/base/file.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 60.0 /* until the rate can be read, beyond a trial's time */
#define ROLLOUTS   2    /* least number in the window that has the rate, */
#define TIMES      2    /* unless a trial takes so many times as long */
#define PLACE_MAX  32   /* longest TMPDIR: paths of runs are short */

/* Without anything but training, and with rows often enough for a rate. One world for evaluations
 * is valid whatever evaluation.episodes is. */
static const char *const common[] = {"evaluation.final_episodes=0",
                                     "evaluation.worlds=1",
                                     "checkpoint.at_end=false",
                                     "metrics.csv=true",
                                     "metrics.interval_s=0.05",
                                     "metrics.tensorboard=off",
                                     "metrics.exec=\"\"",
                                     "control.socket=\"\"",
                                     "report=false"};
#define COMMON (sizeof common / sizeof common[0])

int rm_trials_begin(struct rm_trials *t)
{
    const char *place = getenv("TMPDIR");
    if (!place || strlen(place) > PLACE_MAX)
        place = "/tmp";
    snprintf(t->folder, sizeof t->folder, "%s/ringmaster-trials-XXXXXX", place);
    return mkdtemp(t->folder)
               ? 0
               : rm_ctl_complain(RM_CTL_FAILED, "%s: %s", t->folder, strerror(errno));
}

void rm_trials_end(struct rm_trials *t)
{
    rm_file_remove_all(t->folder);
}

/* --- from a checkpoint ------------------------------------------------------------------------ */

int rm_trials_copy(struct rm_trials *t, const char *run_directory)
{
    static uint64_t numbers[RM_CHECKPOINTS_MAX];
    char folder[RM_SESSION_PATH_MAX];
    struct rm_error error = {""};
    if (!rm_checkpoint_list(run_directory, numbers, RM_CHECKPOINTS_MAX))
        return rm_ctl_complain(RM_CTL_FAILED,
                               "%s has no checkpoint for trials to start from: a run writes one "
                               "at its end, every checkpoint.interval_s, and on `ringctl "
                               "checkpoint`",
                               run_directory);
    t->number = numbers[0];
    if (rm_session_checkpoint_folder(run_directory, t->number, false, folder, &error) < 0)
        return rm_ctl_complain(RM_CTL_FAILED, "%s", error.text);
    const char *const copy[] = {"cp", "-R", "--reflink=auto", folder, t->folder, NULL};
    if (rm_tool_wait(rm_tool_start(copy, -1, false)))
        return rm_ctl_complain(RM_CTL_FAILED,
                               "%s cannot be copied to %s; TMPDIR may name another place", folder,
                               t->folder);
    snprintf(t->checkpoint, sizeof t->checkpoint, "%s%s", t->folder, strrchr(folder, '/'));
    return 0;
}

/* Makes a run that was stopped at the checkpoint: its files are links to those of the copy. */
static bool place_checkpoint(const struct rm_trials *t, const char *runs, const char *name)
{
    char path[160], latest[160];
    snprintf(path, sizeof path, "%s/%s/run/checkpoints", runs, name);
    snprintf(latest, sizeof latest, "%s/%s/latest", runs, name);
    const int folder = rm_file_folder(path, true, NULL, NULL);
    const char *const copy[] = {"cp", "-al", t->checkpoint, path, NULL};
    if (folder < 0)
        return false;
    close(folder);
    return rm_tool_wait(rm_tool_start(copy, -1, false)) == 0 && symlink("run", latest) == 0;
}

/* "policy.from={...}" with the policies of the checkpoint, for the caller to free, or NULL. */
static char *start_weights(const struct rm_trials *t)
{
    static const char suffix[] = ".safetensors";
    char path[96], file[PATH_MAX], *text = NULL, *setting = NULL;
    json_t *files = json_object();
    DIR *folder;
    snprintf(path, sizeof path, "%s/policies", t->checkpoint);
    (void)rm_file_list(path, &folder, NULL);
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        const size_t length = strlen(e->d_name);
        if (length < sizeof suffix || strcmp(e->d_name + length - sizeof suffix + 1, suffix) != 0)
            continue;
        char name[NAME_MAX + 1];
        snprintf(name, sizeof name, "%.*s", (int)(length - sizeof suffix + 1), e->d_name);
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        json_object_set_new(files, name, json_string(file));
    }
    if (folder)
        closedir(folder);
    text = json_dumps(files, JSON_COMPACT);
    if (text && asprintf(&setting, "policy.from=%s", text) < 0)
        setting = NULL;
    free(text);
    json_decref(files);
    return setting;
}

/* --- one of them ------------------------------------------------------------------------------ */

/* Waits until the trial's rows have its rate, of enough whole rollouts, and reads it. */
static bool watch(const char *latest, pid_t *pid, double seconds, struct rm_explained *x)
{
    const uint64_t began = rm_now_ns();
    int status;
    rm_interrupt_sleep(seconds);
    while (!rm_interrupted()) {
        struct rm_error error = {""};
        if (waitpid(*pid, &status, WNOHANG) == *pid) {
            *pid = 0;
            return false;
        }
        const double now = (double)(rm_now_ns() - began) / (double)RM_NS_PER_S;
        if (rm_explain_run(x, latest, NULL, &error) == 0 && x->window_s >= seconds / 4 &&
            (now >= TIMES * seconds ||
             !rm_algorithm_traits(x->experiment->algorithm.name)->rollout ||
             (x->rollout_s > 0 && x->window_s >= ROLLOUTS * x->rollout_s)))
            return true;
        rm_explained_free(x);
        if (now > seconds + PATIENCE_S)
            return false;
        rm_interrupt_sleep(0.2);
    }
    return false;
}

double rm_trial(const struct rm_trials *t, char *const *setting, size_t settings, double seconds,
                struct rm_explained *x)
{
    static struct rm_explained own;
    struct rm_explained *explained = x ? x : &own;
    char *all[COMMON + 2 + RM_TRIAL_SETTINGS], name[32], runs[80], log[80], latest[160];
    char *const weights = t->number && !t->resume ? start_weights(t) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < COMMON; i++)
        all[n++] = (char *)common[i];
    if (weights) {
        all[n++] = weights;
        all[n++] = (char *)"record.directory=\"\"";
    }
    for (size_t i = 0; i < settings && i < RM_TRIAL_SETTINGS; i++)
        all[n++] = setting[i];
    snprintf(name, sizeof name, "trial-%d", (int)getpid());
    snprintf(runs, sizeof runs, "%s/runs", t->folder);
    snprintf(log, sizeof log, "%s/log", t->folder);
    snprintf(latest, sizeof latest, "%s/%s/latest", runs, name);
    (void)remove(log); /* of the trial before */
    pid_t pid = 0;
    if (!t->number || (t->resume ? place_checkpoint(t, runs, name) : weights != NULL))
        pid = rm_start_run(&(struct rm_run_start){.given = t->given,
                                                  .setting = all,
                                                  .settings = n,
                                                  .name = name,
                                                  .directory = runs,
                                                  .log = log,
                                                  .fresh = !t->resume});
    free(weights);
    const bool known = pid > 0 && watch(latest, &pid, seconds, explained);
    const double rate = known ? explained->steps_per_s : (double)NAN;
    if (pid > 0) {
        kill(pid, SIGTERM);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (!x && known)
        rm_explained_free(explained);
    rm_file_remove_all(runs);
    return rate;
}

void rm_trial_said(const struct rm_trials *t, char *line, size_t size)
{
    char path[80], text[512];
    snprintf(path, sizeof path, "%s/log", t->folder);
    FILE *in = fopen(path, "re");
    snprintf(line, size, "it did not begin to train in time");
    while (in && fgets(text, sizeof text, in))
        if (text[0] != '\n') {
            text[strcspn(text, "\n")] = '\0';
            snprintf(line, size, "%s", text);
        }
    if (in)
        fclose(in);
}
