/* A policy file, used from outside: scripts/use_policy.py must come to the network's own numbers.
 */
#include "learner/policy_file.h"
#include "config/config.h"
#include "learner/safetensors.h"
#include "shm/base/rng.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 6, QUANTILES = 5, INPUTS_MAX = 64 };

static char folder[] = "/tmp/rm-policy-XXXXXX";

static const float codebook[] = {0, 1, 0, 2, 0.5f, -1};

/* Three elements of three codes of two channels: six features. */
static const struct rm_env_agent agent = {
    .name = "agent_0",
    .dtype = RM_ENV_CODE8,
    .dims = 2,
    .shape = {3, 1},
    .low = -1,
    .high = 2,
    .codes = 3,
    .channels = 2,
    .codebook = codebook,
    .actions = 3,
    .has_mask = 1,
};

static const struct {
    const char *algorithm, *network;
    uint32_t per_action, draws;
} cases[] = {
    {"dqn",
     "{\"layers\": [{\"type\": \"linear\", \"units\": 20}, {\"type\": \"layer_norm\"},"
     " {\"type\": \"gelu\"}, {\"type\": \"linear\", \"units\": 10}, {\"type\": \"tanh\"}],"
     " \"head\": {\"dueling\": false}, \"normalize_observations\": true, \"observation_clip\": "
     "0.25}",
     1, 1},
    {"qr-dqn",
     "{\"layers\": [{\"type\": \"noisy_linear\", \"units\": 20}, {\"type\": \"relu\"}],"
     " \"head\": {\"dueling\": true, \"noisy\": true}}",
     QUANTILES, 1},
    {"iqn",
     "{\"layers\": [{\"type\": \"linear\", \"units\": 20}, {\"type\": \"relu\"},"
     " {\"type\": \"cosine_embedding\", \"cosines\": 16}, {\"type\": \"noisy_linear\", \"units\": "
     "12},"
     " {\"type\": \"relu\"}], \"head\": {\"dueling\": true, \"noisy\": true}}",
     1, QUANTILES},
};

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_floats(const char *name, const float *from, size_t n)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(from, sizeof *from, n, out), n);
    fclose(out);
}

static size_t read_floats(const char *name, float *to, size_t most)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    const size_t n = fread(to, sizeof *to, most, in);
    fclose(in);
    return n;
}

static void random_floats(float *to, size_t n, uint32_t stream)
{
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < n; i++)
        to[i] = rm_rng_float(&rng);
}

struct made {
    struct rm_experiment experiment;
    struct rm_net *net;
    float *params;
};

/* An experiment of frame stack 2, its network with random parameters, and the file. */
static void make(struct made *m, size_t c)
{
    char json[1024];
    struct rm_error error = {""};
    snprintf(json, sizeof json,
             "{\"name\": \"policy-file\", \"world\": {\"name\": \"count\"},"
             " \"sample\": {\"frame_stack\": 2},"
             " \"algorithm\": {\"name\": \"%s\", \"quantiles\": %d}, \"network\": %s}",
             cases[c].algorithm, QUANTILES, cases[c].network);
    if (rm_config_parse(&m->experiment, "test", json, strlen(json), NULL, 0, &error))
        fail_msg("%s", error.text);
    const struct rm_net_shape shape = {
        .inputs = 12, .actions = 3, .outputs_per_action = cases[c].per_action};
    if (rm_net_compile(&m->net, &m->experiment.network, &shape, &error))
        fail_msg("%s", error.text);
    m->params = calloc(rm_net_param_count(m->net), sizeof *m->params);
    rm_net_init(m->net, m->params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    const struct rm_net_tensor *tensors;
    const size_t count = rm_net_tensors(m->net, &tensors);
    for (size_t i = 0; i < count; i++) /* as if observations had been seen */
        if (strncmp(tensors[i].name, "normalizer.", 11) == 0)
            random_floats(m->params + tensors[i].offset, shape.inputs, 3 + (uint32_t)i);
    const struct rm_policy_file file = {
        .experiment = &m->experiment,
        .policy = cases[c].algorithm,
        .agent = &agent,
        .net = m->net,
        .params = m->params,
        .updates = 17,
        .env_steps = 1234567890123,
    };
    if (rm_policy_file_write(&file, folder, &error))
        fail_msg("%s", error.text);
}

static void unmake(struct made *m)
{
    rm_net_destroy(m->net);
    free(m->params);
}

static void the_file_says_what_it_takes(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct made m;
        struct rm_error error = {""};
        struct rm_safetensors file;
        char path[128];
        make(&m, c);
        snprintf(path, sizeof path, "%s/%s.safetensors", folder, cases[c].algorithm);
        assert_int_equal(rm_safetensors_read(&file, path, &error), 0);
        static const struct {
            const char *key, *value;
        } expected[] = {
            {"format", "ringmaster-policy-1"},
            {"experiment", "policy-file"},
            {"actions", "3"},
            {"frame_stack", "2"},
            {"updates", "17"},
            {"masks", "1"},
            {"env_steps", "1234567890123"},
        };
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
            assert_string_equal(rm_safetensors_metadata(&file, expected[i].key), expected[i].value);
        assert_string_equal(rm_safetensors_metadata(&file, "algorithm"), cases[c].algorithm);
        json_t *observation = json_loads(rm_safetensors_metadata(&file, "observation"), 0, NULL);
        assert_string_equal(json_string_value(json_object_get(observation, "dtype")), "code8");
        const json_t *book = json_object_get(observation, "codebook");
        for (size_t k = 0; k < 6; k++)
            assert_true(json_number_value(json_array_get(json_array_get(book, k / 2), k % 2)) ==
                        (double)codebook[k]);
        json_decref(observation);
        /* Every parameter, once. */
        size_t floats = 0;
        const struct rm_net_tensor *tensors;
        const size_t count = rm_net_tensors(m.net, &tensors);
        assert_int_equal(file.count, count);
        for (size_t i = 0; i < count; i++) {
            const struct rm_tensor *t = rm_safetensors_find(&file, tensors[i].name);
            assert_non_null(t);
            size_t n = 1;
            for (uint32_t d = 0; d < t->dims; d++)
                n *= t->shape[d];
            assert_memory_equal(t->data, m.params + tensors[i].offset, n * sizeof(float));
            floats += n;
        }
        assert_int_equal(floats, rm_net_param_count(m.net));
        rm_safetensors_close(&file);
        unmake(&m);
    }
}

static void forward(const struct made *m, const float *x, const float *tau, uint32_t draws,
                    float *out)
{
    struct rm_error error = {""};
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    const struct rm_net_input in = {
        .x = x, .batch = ROWS, .tau = tau, .quantiles = tau ? draws : 0};
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    assert_int_equal(rm_net_workspace_create(&space, m->net, backend, ROWS, draws, false, &error),
                     0);
    rm_net_prepare(space, m->params);
    const float *y = rm_net_forward(space, m->params, &in);
    memcpy(out, y, (size_t)ROWS * draws * rm_net_outputs(m->net) * sizeof *out);
    rm_net_workspace_destroy(space);
    rm_backend_destroy(backend);
}

/* An interpreter that has NumPy, or NULL. */
static const char *numpy_python(void)
{
    static const char *const candidates[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s -c 'import numpy' >/dev/null 2>&1", candidates[i]);
        if (system(command) == 0)
            return candidates[i];
    }
    return NULL;
}

static void numpy_comes_to_the_same_numbers(void **state)
{
    (void)state;
    if (access("scripts/use_policy.py", R_OK)) {
        print_message("skipped: not run from the top of the tree\n");
        skip();
    }
    const char *python = numpy_python();
    if (!python) {
        print_message("skipped: there is no python3 with NumPy\n");
        skip();
    }
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static struct made m;
        static float x[ROWS * INPUTS_MAX], tau[ROWS * QUANTILES], want[4096], got[4096];
        char command[640];
        const bool iqn = cases[c].draws > 1;
        make(&m, c);
        const size_t inputs = rm_net_inputs(m.net);
        const size_t outputs = (size_t)ROWS * cases[c].draws * rm_net_outputs(m.net);
        random_floats(x, ROWS * inputs, 1);
        random_floats(tau, ROWS * QUANTILES, 2);
        write_floats("x", x, ROWS * inputs);
        write_floats("tau", tau, ROWS * QUANTILES);
        snprintf(command, sizeof command,
                 "%s scripts/use_policy.py %s/%s.safetensors --inputs %s/x --outputs %s/q %s%s%s",
                 python, folder, cases[c].algorithm, folder, folder, iqn ? "--tau " : "",
                 iqn ? folder : "", iqn ? "/tau" : "");
        assert_int_equal(system(command), 0);
        assert_int_equal(read_floats("q", got, 4096), outputs);
        forward(&m, x, iqn ? tau : NULL, cases[c].draws, want);
        for (size_t i = 0; i < outputs; i++)
            if (fabs((double)got[i] - (double)want[i]) > 2e-5 + 1e-4 * fabs((double)want[i]))
                fail_msg("%s: output %zu is %g in NumPy, %g here", cases[c].algorithm, i,
                         (double)got[i], (double)want[i]);
        snprintf(command, sizeof command,
                 "%s scripts/use_policy.py %s/%s.safetensors | grep -c '^action [0-2]$' "
                 "| grep -qx 5",
                 python, folder, cases[c].algorithm);
        assert_int_equal(system(command), 0);
        unmake(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_what_it_takes),
        cmocka_unit_test(numpy_comes_to_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
