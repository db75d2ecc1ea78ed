#include "learner/device_choice.h"

#include "config/traits.h"
#include "learner/algo/algo.h"
#include "learner/algo/parallel.h"
#include "learner/backend/device.h"
#include "learner/net/net.h"
#include "shm/atomic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- finding devices ------------------------------------------------------------------------- */

struct devices {
    struct rm_device_info info[RM_DEVICES_MAX];
    uint32_t count;
};

static int find_devices(struct devices *found, struct rm_error *error)
{
    const struct rm_backend_plugin *plugin;
    uint32_t count = 0;
    found->count = 0;
    int rc = rm_plugin_open(&plugin, error);
    if (!rc)
        rc = plugin->devices(found->info, RM_DEVICES_MAX, &count, error);
    if (rc)
        return rc;
    found->count = count < RM_DEVICES_MAX ? count : RM_DEVICES_MAX;
    return found->count ? 0 : rm_fail(error, -ENODEV, "there is no CUDA device");
}

static bool in_quarantine(const struct rm_board_run *run, const char *uuid)
{
    const uint32_t n = run ? RM_SEE(&run->quarantined) : 0;
    for (uint32_t i = 0; i < n && i < RM_BOARD_QUARANTINED; i++)
        if (strcmp(run->quarantine[i], uuid) == 0)
            return true;
    return false;
}

static bool is_called(const struct rm_device_info *info, const char *name)
{
    char numbered[24];
    snprintf(numbered, sizeof numbered, "cuda:%u", info->index);
    if (strcmp(name, numbered) == 0)
        return true;
    return strlen(name) > 4 && strncmp(info->uuid, name, strlen(name)) == 0;
}

/* --- choosing -------------------------------------------------------------------------------- */

/* How the CPU computes products with this learner.compute, for the log. */
static const char *computed(const struct rm_device_request *request)
{
    if (request->compute == RM_COMPUTE_FP32)
        return "";
    if (request->compute != RM_COMPUTE_BF16)
        return "; products are fp32: this learner.compute needs a GPU";
    return rm_backend_cpu_has_bf16(request->isa)
               ? "; products are bf16"
               : "; products are fp32: learner.compute \"bf16\" needs a processor with AVX512_BF16";
}

static int take_cpu(struct rm_device_choice *choice, const struct rm_device_request *request,
                    const char *why)
{
    snprintf(choice->why, sizeof choice->why, "cpu: %.400s%s", why, computed(request));
    return 0;
}

/* Writes " with cuda:1, cuda:2 (NCCL)" if there are several devices. */
static void name_others(const struct rm_device_choice *choice, char *text, size_t room)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 1; i < choice->count && at < room; i++)
        at += (size_t)snprintf(text + at, room - at, "%s cuda:%u", i == 1 ? " with" : ",",
                               choice->info[i].index);
    if (at && at < room)
        snprintf(text + at, room - at, " (NCCL)");
}

/* Chooses `count` devices: the one at `first` and those after it, cyclically. */
static int choose_from(struct rm_device_choice *choice, const struct devices *among, uint32_t first,
                       uint32_t count, const char *why)
{
    const struct rm_device_info *info = &among->info[first];
    char others[160];
    choice->device = true;
    choice->count = count;
    for (uint32_t i = 0; i < count; i++)
        choice->info[i] = among->info[(first + i) % among->count];
    name_others(choice, others, sizeof others);
    snprintf(choice->why, sizeof choice->why, "cuda:%u, %.80s (%s)%s%s: %s", info->index,
             info->name, info->uuid, info->mps ? ", shared through MPS" : "", others, why);
    return 0;
}

static uint32_t devices_of(const struct rm_device_request *request)
{
    return request->devices && !request->alone ? request->devices : 1;
}

/* Chooses the named devices, or fails if one is missing. */
static int take_named(struct rm_device_choice *choice, const struct devices *found, uint32_t first,
                      const struct rm_device_request *request, struct rm_error *error)
{
    const uint32_t count = devices_of(request);
    if (count > found->count - first || count > RM_DEVICE_MEMBERS)
        return rm_fail(error, -ENODEV,
                       "learner.device \"%s\", learner.devices %u: of the %u GPU%s of this host "
                       "only %u come after it",
                       request->device, count, found->count, found->count == 1 ? "" : "s",
                       found->count - first - 1);
    for (uint32_t i = first; i < first + count; i++)
        if (in_quarantine(request->run, found->info[i].uuid))
            return rm_fail(error, -EHOSTDOWN,
                           "learner.device \"%s\": %s failed learner.device_faults times and is no "
                           "longer used; with \"auto\" the run would use another device",
                           request->device, found->info[i].uuid);
    return choose_from(choice, found, first, count, "asked for");
}

static int choose_by_name(struct rm_device_choice *choice, const struct rm_device_request *request,
                          struct rm_error *error)
{
    struct devices found;
    choice->asked_for = true;
    if (request->cannot)
        return rm_fail(error, -ENOTSUP, "learner.device \"%s\": %s", request->device,
                       request->cannot);
    const int rc = find_devices(&found, error);
    if (rc)
        return rm_fail_within(error, rc, "learner.device \"%s\"", request->device);
    for (uint32_t i = 0; i < found.count; i++)
        if (is_called(&found.info[i], request->device))
            return take_named(choice, &found, i, request, error);
    return rm_fail(error, -ENODEV,
                   "learner.device \"%s\": no such GPU; this host has %scuda:0 (%s)%s",
                   request->device, found.count == 1 ? "only " : "", found.info[0].uuid,
                   found.count == 1 ? "" : " and more (nvidia-smi -L)");
}

/* The largest number of usable devices, up to the requested one, that divides the batch evenly.
 * Results do not depend on it, except for rounding. */
static uint32_t as_many(const struct rm_device_request *request, uint32_t usable)
{
    uint32_t count = devices_of(request);
    count = count < usable ? count : usable;
    count = count < RM_DEVICE_MEMBERS ? count : RM_DEVICE_MEMBERS;
    while (count > 1 && request->batch % count)
        count--;
    return count;
}

static int choose(struct rm_device_choice *choice, const struct rm_device_request *request)
{
    struct devices found;
    struct rm_error error = {""};
    char why[256];
    uint32_t usable = 0;
    if (request->cannot)
        return take_cpu(choice, request, request->cannot);
    if (request->flops < RM_DEVICE_WORTH_FLOPS) {
        snprintf(why, sizeof why, "an update is %.3g Mflop, too short for a GPU (from %.3g on)",
                 request->flops / 1e6, RM_DEVICE_WORTH_FLOPS / 1e6);
        return take_cpu(choice, request, why);
    }
    if (find_devices(&found, &error))
        return take_cpu(choice, request, error.text);
    for (uint32_t i = 0; i < found.count; i++)
        if (!in_quarantine(request->run, found.info[i].uuid))
            found.info[usable++] = found.info[i];
    if (!usable)
        return take_cpu(
            choice, request,
            "every GPU of this host failed learner.device_faults times and is no longer used");
    found.count = usable;
    const uint32_t wanted = devices_of(request), count = as_many(request, usable);
    int at = snprintf(why, sizeof why, "an update is %.3g Mflop", request->flops / 1e6);
    if (request->alone)
        snprintf(why + at, sizeof why - (size_t)at, "; only one: %.150s", request->alone);
    else if (count < wanted)
        snprintf(why + at, sizeof why - (size_t)at, "; %u of learner.devices %u", count, wanted);
    return choose_from(choice, &found, request->policy * wanted % usable, count, why);
}

int rm_device_choose(struct rm_device_choice *choice, const struct rm_device_request *request,
                     struct rm_error *error)
{
    *choice = (struct rm_device_choice){0};
    if (strcmp(request->device, "cpu") == 0)
        return take_cpu(choice, request, "asked for");
    if (strcmp(request->device, "auto") == 0)
        return choose(choice, request);
    return choose_by_name(choice, request, error);
}

bool rm_device_hopeless(int code)
{
    static const int codes[] = {-ENODEV, -ENOENT, -ENOTSUP, -ELIBACC, -EPROTO, -EHOSTDOWN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code == codes[i])
            return true;
    return false;
}

/* --- of a learner ---------------------------------------------------------------------------- */

/* Rows of an update. */
static uint64_t rows_of(const struct rm_session *session, uint32_t policy)
{
    const struct rm_experiment *e = &session->experiment;
    if (!rm_algorithm_traits(e->algorithm.name)->rollout)
        return (uint64_t)e->sample.batch * (rm_learns_sequences(e) ? e->sample.sequence : 1);
    const uint64_t lanes = (uint64_t)session->plan.policy[policy].agents * e->actor.worlds;
    return lanes * e->rollout.steps / (e->algorithm.minibatches ? e->algorithm.minibatches : 1);
}

/* The forward pass, and twice that for the backward pass; other passes are not counted. */
static double update_flops(const struct rm_session *session, uint32_t policy)
{
    const struct rm_experiment *e = &session->experiment;
    const uint64_t rows = rows_of(session, policy);
    struct rm_error ignored;
    struct rm_net *net;
    if (rm_net_compile(&net, &e->network, &session->plan.policy[policy].shape, &ignored))
        return 0; /* the learner fails with the reason when it compiles the network */
    const uint32_t quantiles = rm_net_uses_quantiles(net) ? e->algorithm.quantiles : 0;
    const uint32_t batch = rows < UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
    const double flops = 3 * rm_net_forward_flops(net, batch, quantiles);
    rm_net_destroy(net);
    return flops;
}

struct rm_device_request rm_device_request_of(const struct rm_session *session, uint32_t policy)
{
    const struct rm_experiment *e = &session->experiment;
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    struct rm_device_request request = {
        .device = e->learner.device,
        .compute = e->learner.compute,
        .isa = e->learner.isa,
        .threads = e->learner.threads,
        .policy = policy,
        .devices = e->learner.devices,
        .batch = traits->rollout ? 0 : e->sample.batch,
        .flops = update_flops(session, policy),
        .run = session->board.run,
    };
    if (e->actor.device != RM_ACTOR_CPU && strcmp(request.device, "auto") == 0)
        request.device = "cuda:0"; /* worlds on a device need the GPU */
    if (rm_frozen_policy(e, policy))
        request.cannot = "a frozen opponent trains nothing";
    return request;
}

/* Opens a backend for each device and joins several. On failure none stays open. */
static int open_all(struct rm_backend **backend, const struct rm_backend_plugin *plugin,
                    const struct rm_device_choice *choice, const struct rm_device_request *request,
                    struct rm_error *error)
{
    struct rm_backend *all[RM_DEVICE_MEMBERS] = {NULL};
    uint32_t open = 0;
    int rc = 0;
    for (; open < choice->count && !rc; open += !rc) {
        const struct rm_device_spec spec = {.index = choice->info[open].index,
                                            .compute = request->compute,
                                            .threads = request->threads};
        rc = plugin->create(&all[open], &spec, error);
    }
    if (!rc && open > 1)
        rc = all[0]->device->collective->join(all, open, error);
    for (uint32_t i = 0; rc && i < open; i++)
        rm_backend_destroy(all[i]);
    *backend = rc ? NULL : all[0];
    return rc;
}

int rm_device_open(struct rm_backend **backend, const struct rm_device_choice *choice,
                   const struct rm_device_request *request, struct rm_error *error)
{
    const struct rm_backend_plugin *plugin;
    *backend = NULL;
    if (!choice->device) {
        const int rc = rm_backend_cpu_create_for(backend, request->threads, request->isa,
                                                 request->compute, error);
        return rc ? rm_fail_within(error, rc, "learner.isa \"%s\"", request->isa) : 0;
    }
    const int rc = rm_plugin_open(&plugin, error);
    return rc ? rc : open_all(backend, plugin, choice, request, error);
}

void rm_device_close(struct rm_backend *backend)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS];
    uint32_t count = rm_parallel_devices(backend);
    if (count < 2) {
        rm_backend_destroy(backend);
        return;
    }
    backend->device->collective->members(backend, members);
    for (uint32_t i = 0; i < count; i++)
        rm_backend_destroy(members[i]);
}

const char *rm_device_shortage(struct rm_backend *backend, uint32_t *which)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS] = {backend};
    const char *words = "";
    uint32_t count = 1;
    if (rm_parallel_devices(backend) > 1)
        count = backend->device->collective->members(backend, members);
    for (*which = 0; backend->device && *which < count; ++*which) {
        words = members[*which]->device->shortage(members[*which]);
        if (words[0])
            return words;
    }
    *which = 0;
    return words;
}

void rm_device_report(struct rm_board_worker *slot, const struct rm_device_choice *choice,
                      uint32_t which)
{
    snprintf(slot->device, sizeof slot->device, "%s",
             choice->device ? choice->info[which].uuid : "cpu");
}

uint32_t rm_device_failing(struct rm_backend *backend)
{
    return rm_parallel_devices(backend) > 1 ? backend->device->collective->failing_device(backend)
                                            : 0;
}
