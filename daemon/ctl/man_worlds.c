#include "actor/worlds/options.h"
#include "daemon/ctl/man_pages.h"
#include "daemon/ctl/mdoc.h"
#include "daemon/ctl/world_view.h"

#include <math.h>

static void write_agents(FILE *out, const struct rm_env_spec *spec)
{
    /* Agents with equal observations and actions are described once. */
    char observation[RM_WORLD_TEXT_MAX], actions[96];
    const struct rm_env_agent *agent = &spec->agent[0];
    rm_world_observation_text(agent, observation, sizeof observation);
    rm_world_actions_text(agent, actions, sizeof actions);
    rm_mdoc_line(out, ".Pp");
    char text[RM_WORLD_TEXT_MAX + 256];
    snprintf(text, sizeof text, "%u %s%s. Observation: %s, %u network inputs. Actions: %s%s.",
             spec->agents, spec->agents == 1 ? "agent" : "agents",
             spec->phases > 1 ? " that act in turn within a step" : "", observation,
             rm_env_obs_features(agent), actions,
             agent->has_mask ? ", with a mask of the legal ones" : "");
    rm_mdoc_text(out, text);
    if (spec->max_steps) {
        snprintf(text, sizeof text, "Episodes last at most %u steps.", spec->max_steps);
        rm_mdoc_text(out, text);
    }
    if (isfinite(spec->score_random)) {
        snprintf(text, sizeof text, "Uniformly random play scores %g.", spec->score_random);
        rm_mdoc_text(out, text);
    }
    if (isfinite(spec->score_solved)) {
        snprintf(text, sizeof text, "It counts as solved at %g.", spec->score_solved);
        rm_mdoc_text(out, text);
    }
}

static void write_options(FILE *out, const struct rm_env_option_doc *options)
{
    if (!options || !options->key)
        return;
    rm_mdoc_line(out, ".Pp");
    rm_mdoc_text(out, "Options:");
    rm_mdoc_line(out, ".Bl -tag -width Ds");
    for (; options->key; options++) {
        char text[256], words[128], fallback[64];
        rm_mdoc_line(out, ".It Cm %s", options->key);
        rm_world_option_text(options, words, sizeof words);
        rm_option_fallback_text(options, fallback, sizeof fallback);
        if (rm_option_is_number(options))
            snprintf(text, sizeof text, "(%g to %g; default %s)", options->low, options->high,
                     fallback);
        else
            snprintf(text, sizeof text, "(%s%s; default %s)", rm_option_takes(options), words,
                     fallback);
        rm_mdoc_text(out, text);
        rm_mdoc_line(out, ".br");
        rm_mdoc_text(out, options->doc ? options->doc : "");
    }
    rm_mdoc_line(out, ".El");
}

void rm_man_worlds(FILE *out)
{
    rm_mdoc_head(out, "ringmaster-worlds", "7", "built-in worlds and their options");
    rm_mdoc_line(out, ".Sh DESCRIPTION");
    rm_mdoc_text(
        out,
        "The worlds that `world.name` of an experiment can name without "
        "`world.library`. Their options stand under `world.options`; true "
        "and false are 1 and 0. `ringctl envs` shows the same, and with `--library` also worlds of "
        "your own.");
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        struct rm_world_view view;
        struct rm_error error;
        if (rm_world_view_open(&view, rm_builtin_worlds[i]->name, "", &error))
            continue;
        rm_mdoc_line(out, ".Ss %s", view.spec->name);
        rm_mdoc_text(out, view.spec->doc ? view.spec->doc : "");
        write_agents(out, view.spec);
        write_options(out, view.world.options);
        rm_world_view_close(&view);
    }
    rm_mdoc_line(out, ".Sh SEE ALSO");
    rm_mdoc_line(out, ".Xr ringctl 1 ,");
    rm_mdoc_line(out, ".Xr ringmaster.json 5");
}
