/* replay: every input of a fuzzer's corpus once more, in `make test`: what was found stays found.
 * Included after the fuzzer's source, with CORPUS its name. */
#ifndef RM_TESTS_FUZZ_REPLAY_H
#define RM_TESTS_FUZZ_REPLAY_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return -1;
    const long bytes = ftell(file);
    uint8_t *data = bytes >= 0 ? malloc((size_t)bytes + 1) : NULL;
    rewind(file);
    const int all_read = data && fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
    fclose(file);
    if (all_read)
        LLVMFuzzerTestOneInput(data, (size_t)bytes);
    free(data);
    return all_read ? 0 : -1;
}

int main(void)
{
    const char *corpus = "tests/fuzz/corpus/" CORPUS;
    char path[512];
    int inputs = 0;
    DIR *entries = opendir(corpus);
    for (struct dirent *e; entries && (e = readdir(entries));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", corpus, e->d_name);
        if (replay_file(path)) {
            printf("not ok - %s cannot be read\n", path);
            return 1;
        }
        inputs++;
    }
    if (entries)
        closedir(entries);
    printf("%sok - %d inputs of %s\n", inputs ? "" : "not ", inputs, corpus);
    return inputs ? 0 : 1;
}

#endif
