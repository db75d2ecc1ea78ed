/* implements: config/check.h, for the processes of a run: actors, evaluator, supervisor. */
#include "config/check_tables.h"
#include "config/names.h"
#include "config/traits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...) (snprintf(text, bytes, __VA_ARGS__), true)

/* --- worlds and processes ------------------------------------------------------------------ */

static bool worlds_per_actor(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.worlds < e->actor.count &&
           SAY("%u worlds for %u actors (actor.count): every actor needs one", e->actor.worlds,
               e->actor.count);
}

static bool python_or_library(experiment_t *e, char *text, size_t bytes)
{
    return e->world.python[0] && e->world.library[0] &&
           SAY("\"%s\", but world.library is \"%s\" too; set only one of them", e->world.python,
               e->world.library);
}

static bool prolog_or_another(experiment_t *e, char *text, size_t bytes)
{
    const bool python = e->world.python[0];
    return e->world.prolog[0] && (python || e->world.library[0]) &&
           SAY("\"%s\", but world.%s is \"%s\" too; set only one of them", e->world.prolog,
               python ? "python" : "library", python ? e->world.python : e->world.library);
}

static bool prolog_device(experiment_t *e, char *text, size_t bytes)
{
    return e->world.prolog[0] && e->actor.device != RM_ACTOR_CPU &&
           SAY("\"%s\": a Prolog world (world.prolog) is stepped by SWI-Prolog, on the CPU",
               rm_actor_device_names[e->actor.device]);
}

/* module:name, both there. */
static bool python_form(experiment_t *e, char *text, size_t bytes)
{
    const char *p = e->world.python, *colon = strchr(p, ':');
    return p[0] && (!colon || colon == p || !colon[1] || strpbrk(p, " \t\n")) &&
           SAY("\"%s\" does not name a Python world; use \"gymnasium:ID\" or \"module:function\"",
               p);
}

static bool python_device(experiment_t *e, char *text, size_t bytes)
{
    return e->world.python[0] && e->actor.device != RM_ACTOR_CPU &&
           SAY("\"%s\": a Python world (world.python) is stepped by Python, on the CPU",
               rm_actor_device_names[e->actor.device]);
}

#define MEMORY_LEAST (UINT64_C(64) << 20)

static bool memory_least(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.memory_limit > 0 && e->actor.memory_limit < MEMORY_LEAST &&
           SAY("%" PRIu64 " bytes are too few for the actor itself; use at least %" PRIu64,
               e->actor.memory_limit, MEMORY_LEAST);
}

/* --- devices ------------------------------------------------------------------------------- */

static bool device_form(experiment_t *e, char *text, size_t bytes)
{
    const char *d = e->learner.device;
    const size_t digits = strncmp(d, "cuda:", 5) == 0 ? strspn(d + 5, "0123456789") : 0;
    const bool plain = digits == 1 || (digits > 1 && digits < 4 && d[5] != '0');
    const bool numbered = plain && d[5 + digits] == '\0';
    return strcmp(d, "auto") != 0 && strcmp(d, "cpu") != 0 && !numbered &&
           strncmp(d, "GPU-", 4) != 0 &&
           SAY("\"%s\" is not a device; use \"auto\", \"cpu\", \"cuda:N\" or the UUID of a GPU "
               "(\"GPU-...\", "
               "as nvidia-smi -L shows it)",
               d);
}

/* --- worlds on a device -------------------------------------------------------------------- */

#define NATIVE(e) ((e)->actor.device != RM_ACTOR_CPU)

static bool native_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && e->algorithm.name != RM_ALGORITHM_PPO &&
           SAY("\"%s\": worlds on a device act with the learner's weights, which needs "
               "algorithm.name \"ppo\"; it is \"%s\"",
               rm_actor_device_names[e->actor.device], rm_algorithm_names[e->algorithm.name]);
}

static bool native_learner(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && strcmp(e->learner.device, "cpu") == 0 &&
           SAY("\"%s\": worlds are on the learner's device, but learner.device is \"cpu\"",
               rm_actor_device_names[e->actor.device]);
}

static bool native_records(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && rm_experiment_records(e) &&
           SAY("\"%s\": rows of worlds on a device (actor.device) are not recorded",
               e->record.directory);
}

/* In sequential mode the confined process records: it may write below the run's directory alone. */
static bool record_place(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_confines(e) && e->mode == RM_MODE_SEQUENTIAL &&
           e->record.directory[0] == '/' &&
           SAY("\"%s\": the one process of sequential mode is confined (actor.sandbox) and may "
               "write "
               "in the run's directory alone; give a relative path",
               e->record.directory);
}

static bool native_frames(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && e->sample.frame_stack > 1 &&
           SAY("%u frames: worlds on a device (actor.device) have no frame stacks; use 1",
               e->sample.frame_stack);
}

static bool native_stages(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && e->curriculum.stages &&
           SAY("%u stages: worlds on a device (actor.device) keep their options; use none",
               e->curriculum.stages);
}

static bool native_rewards(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && e->algorithm.normalize_rewards &&
           SAY("true: worlds on a device (actor.device) do not support scaled rewards; use false, "
               "or PopArt (algorithm.value_head)");
}

static bool native_observations(experiment_t *e, char *text, size_t bytes)
{
    return NATIVE(e) && e->network.normalize_observations &&
           SAY("true: worlds on a device (actor.device) do not support normalised observations; "
               "use false");
}

/* --- evaluation ---------------------------------------------------------------------------- */

/* Episodes are divided evenly among the worlds. */
static bool evaluation_worlds(experiment_t *e, char *text, size_t bytes)
{
    uint32_t most = e->evaluation.episodes > e->evaluation.final_episodes
                        ? e->evaluation.episodes
                        : e->evaluation.final_episodes;
    return e->evaluation.worlds > most &&
           SAY("%u worlds, but no evaluation has more than %u episodes (evaluation.episodes, "
               "evaluation.final_episodes): the rest would never play",
               e->evaluation.worlds, most);
}

static bool evaluated_once(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_only_evaluates(e) && !e->evaluation.final_episodes &&
           SAY("0 episodes, in a run that only evaluates (run.steps 0 with policy.from): nothing "
               "would be done; set a number of episodes");
}

/* --- supervisor ---------------------------------------------------------------------------- */

static bool backoff(experiment_t *e, char *text, size_t bytes)
{
    return e->supervisor.backoff_max_s < e->supervisor.respawn_floor_s &&
           SAY("%g s is below supervisor.respawn_floor_s (%g s)", e->supervisor.backoff_max_s,
               e->supervisor.respawn_floor_s);
}

static bool deaths(experiment_t *e, char *text, size_t bytes)
{
    double least = e->supervisor.deaths_max * e->supervisor.respawn_floor_s;
    return least > e->supervisor.deaths_window_s &&
           SAY("%u deaths cannot occur within supervisor.deaths_window_s (%g s) when starts are "
               "supervisor.respawn_floor_s (%g s) apart",
               e->supervisor.deaths_max, e->supervisor.deaths_window_s,
               e->supervisor.respawn_floor_s);
}

static const struct rm_check rows[] = {
    {{"world.python", "world.library"},
     python_or_library,
     "A world is a shared object or in Python."},
    {{"world.python"},
     python_form,
     "A Python world is named by a Gymnasium id, or by a module and a function."},
    {{"actor.device", "world.python"}, python_device, "Python worlds are on the CPU."},
    {{"world.prolog", "world.python", "world.library"},
     prolog_or_another,
     "A world is a shared object, in Python or in Prolog."},
    {{"actor.device", "world.prolog"}, prolog_device, "Prolog worlds are on the CPU."},
    {{"actor.worlds", "actor.count"}, worlds_per_actor, "Every actor has at least one world."},
    {{"learner.device"}, device_form, "learner.device is \"auto\", \"cpu\" or the name of a GPU."},
    {{"actor.device", "algorithm.name"},
     native_algorithm,
     "Worlds on a device need an algorithm that acts with the learner's weights."},
    {{"actor.device", "learner.device"},
     native_learner,
     "Worlds on a device are on the learner's."},
    {{"sample.frame_stack", "actor.device"},
     native_frames,
     "Worlds on a device have no frame stacks."},
    {{"record.directory", "actor.device"},
     native_records,
     "Rows of worlds on a device are not recorded."},
    {{"record.directory", "mode", "actor.sandbox"},
     record_place,
     "The confined process of sequential mode records into the run's directory."},
    {{"curriculum", "actor.device"}, native_stages, "Worlds on a device have no curriculum."},
    {{"algorithm.normalize_rewards", "actor.device"},
     native_rewards,
     "Rewards that stay on a device are not scaled."},
    {{"network.normalize_observations", "actor.device"},
     native_observations,
     "Observations that stay on a device are not normalised."},
    {{"actor.memory_limit"}, memory_least, "The actor itself fits into its memory."},
    {{"evaluation.worlds", "evaluation.episodes", "evaluation.final_episodes"},
     evaluation_worlds,
     "Every world of the evaluator has an episode to play."},
    {{"evaluation.final_episodes", "run.steps", "policy.from"},
     evaluated_once,
     "A run that only evaluates has episodes to play."},
    {{"supervisor.backoff_max_s", "supervisor.respawn_floor_s"},
     backoff,
     "The longest delay is at least the floor."},
    {{"supervisor.deaths_max", "supervisor.deaths_window_s", "supervisor.respawn_floor_s"},
     deaths,
     "deaths_max deaths can occur within the window."},
};
const struct rm_check_table rm_checks_of_processes = {rows, sizeof(rows) / sizeof(rows[0])};
