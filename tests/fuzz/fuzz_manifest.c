/* Any bytes as the manifest of a checkpoint: refused with words, or what it says was checked. The
 * first byte chooses whether the bytes are the file, or the inner object, whose hash is then made
 * right. Beside it lie a file, a folder, a pipe and a link that leads out. */
#include "config/config.h"
#include "daemon/checkpoint_files.h"
#include "tests/fuzz/file.h"

#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void put(const char *name, const void *data, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    demand(file && fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0, "no room");
}

static void remove_folder(void)
{
    static const char *const names[] = {"manifest.json", "a", "inner", "pipe", "out"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

static void make_folder(void)
{
    char path[128];
    snprintf(folder, sizeof folder, "%s/rm-fuzz-%d-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
    demand(mkdtemp(folder) != NULL, "no folder");
    atexit(remove_folder);
    put("a", "rows", 4);
    snprintf(path, sizeof path, "%s/inner", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/pipe", folder);
    mkfifo(path, 0600);
    snprintf(path, sizeof path, "%s/out", folder);
    demand(symlink("/dev/zero", path) == 0, "no link");
}

/* {"manifest": the bytes, "xxh3": of them}; the bytes as they are where they are no JSON. */
static void put_hashed(const char *text, size_t bytes)
{
    json_t *inner = json_loadb(text, bytes, JSON_DECODE_ANY, NULL);
    char hex[17] = "", *compact = NULL;
    if (inner)
        compact = json_dumps(inner, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (compact)
        snprintf(hex, sizeof hex, "%016llx",
                 (unsigned long long)XXH3_64bits(compact, strlen(compact)));
    json_t *outer = json_pack("{s:o,s:s}", "manifest", inner ? inner : json_null(), "xxh3", hex);
    char *whole = json_dumps(outer, 0);
    put("manifest.json", whole ? whole : text, whole ? strlen(whole) : bytes);
    free(whole);
    free(compact);
    json_decref(outer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rm_checkpoint_facts facts;
    struct rm_error error = {{0}};
    if (size < 1)
        return 0;
    if (!folder[0])
        make_folder();
    const char *text = (const char *)data + 1;
    if (data[0] & 1)
        put_hashed(text, size - 1);
    else
        put("manifest.json", text, size - 1);
    if (rm_checkpoint_check(folder, true, &facts, &error)) {
        demand(error.text[0] != '\0', "refused without words");
        return 0;
    }
    demand(facts.config != NULL, "no configuration");
    demand(memchr(facts.run, 0, sizeof facts.run) != NULL, "a name without an end");
    rm_checkpoint_facts_free(&facts);
    return 0;
}
