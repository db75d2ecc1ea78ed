/* Any bytes as an archive: refused with words, or streams that end. The first byte chooses whether
 * the bytes are the file, or blocks that are then made right (archive.h).
 */
#include "shm/base/archive.h"
#include "tests/fuzz/archive.h"
#include "tests/fuzz/file.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct rm_archive_reader *reader)
{
    static uint8_t some[70000];
    static const size_t amounts[] = {1, 0, 7, 16, 65536, 3};
    char name[RM_ARCHIVE_NAME_MAX];
    struct rm_error error = {{0}};
    int rc, streams = 0;
    while ((rc = rm_archive_next(reader, name, &error)) > 0) {
        demand(strlen(name) < sizeof name, "a name without an end");
        /* Some streams whole, some in part, some not at all. */
        for (size_t i = 0; streams % 3 < 2; i++) {
            rc = rm_archive_get(reader, some, amounts[i % 6], &error);
            if (rc)
                demand(error.text[0] != '\0', "refused without words");
            if (rc || (streams % 3 == 1 && i > 2))
                break;
        }
        if (rc && rc != -ENODATA)
            return;
        streams++;
    }
    demand(rc == 0 || error.text[0] != '\0', "refused without words");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rm_archive_reader *reader;
    struct rm_error error = {{0}};
    char path[64];
    if (size == 0)
        return 0;
    uint8_t *made = malloc(archive_bytes_max(size));
    demand(made != NULL, "no memory");
    size_t bytes = size - 1;
    if (data[0] & 1)
        bytes = archive_of(data + 1, size - 1, made);
    else
        memcpy(made, data + 1, bytes);
    const int fd = file_of(made, bytes, path);
    if (rm_archive_open(&reader, path, &error) == 0) {
        read_all(reader);
        rm_archive_reader_close(reader);
    } else {
        demand(error.text[0] != '\0' && reader == NULL, "refused without words");
    }
    close(fd);
    free(made);
    return 0;
}
