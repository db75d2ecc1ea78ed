/* Levels as text: 23 rows of 42 tiles, then lines that say where things are. */
#include "actor/worlds/builtin/platformer_level.h"
#include "actor/worlds/builtin/text_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INNER_COLUMNS = RM_PLATFORMER_COLUMNS - 2,
    INNER_ROWS = RM_PLATFORMER_ROWS - 2,
    TEXT_MAX = 1 << 16,
    WORDS = 6
};

struct reader {
    struct rm_platformer_level *level;
    char name[RM_TEXT_NAME]; /* of the file */
    uint32_t line;           /* from 1 */
    uint32_t rows;
    bool spawn, opener, exit; /* has been said */
    char *error;
    size_t error_size;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct reader *r, const char *format,
                                                      ...)
{
    va_list args;
    const int used = snprintf(r->error, r->error_size, "%s:%u: ", r->name, r->line);
    va_start(args, format);
    if (used >= 0 && (size_t)used < r->error_size)
        vsnprintf(r->error + used, r->error_size - (size_t)used, format, args);
    va_end(args);
    return -EINVAL;
}

/* --- tiles ------------------------------------------------------------------------------------ */

static const char letters[] = ".#6789";

static int read_row(struct reader *r, const char *text)
{
    static const uint8_t tiles[] = {RM_PLATFORMER_EMPTY,       RM_PLATFORMER_FULL,
                                    RM_PLATFORMER_UPPER_LEFT,  RM_PLATFORMER_UPPER_RIGHT,
                                    RM_PLATFORMER_LOWER_RIGHT, RM_PLATFORMER_LOWER_LEFT};
    const size_t length = strlen(text);
    if (*text >= 'a' && *text <= 'z') /* of a line that follows the rows */
        return fail(r, "'%.24s' follows %u rows of tiles, must follow %d", text, r->rows,
                    INNER_ROWS);
    if (length != INNER_COLUMNS)
        return fail(r, "row %u of the level has %zu tiles, must have %d", r->rows + 1, length,
                    INNER_COLUMNS);
    for (uint32_t i = 0; i < INNER_COLUMNS; i++) {
        const char *letter = strchr(letters, text[i]);
        if (!letter)
            return fail(r, "tile %u is '%c', must be one of . # 6 7 8 9", i + 1,
                        text[i] > ' ' && text[i] < 127 ? text[i] : '?');
        r->level->tile[1 + r->rows][1 + i] = tiles[letter - letters];
    }
    r->rows++;
    return 0;
}

/* --- things ----------------------------------------------------------------------------------- */

static int read_number(const struct reader *r, const char *word, long low, long high,
                       const char *what, int16_t *value)
{
    char *end;
    errno = 0;
    const long number = strtol(word, &end, 10);
    if (errno || end == word || *end || number < low || number > high)
        return fail(r, "%s is '%.24s', must be a whole number of pixels from %ld to %ld", what,
                    word, low, high);
    *value = (int16_t)number;
    return 0;
}

/* A place inside the border. */
static int read_point(const struct reader *r, char *const *word, struct rm_platformer_point *at)
{
    const int tile = RM_PLATFORMER_TILE;
    const int rc = read_number(r, word[0], tile, tile * (INNER_COLUMNS + 1) - 1, "x", &at->x);
    return rc < 0 ? rc : read_number(r, word[1], tile, tile * (INNER_ROWS + 1) - 1, "y", &at->y);
}

static int read_once(struct reader *r, char *const *word, bool *said,
                     struct rm_platformer_point *at)
{
    if (*said)
        return fail(r, "a second '%s'; a level has one", word[0]);
    *said = true;
    return read_point(r, word + 1, at);
}

static int read_spawn(struct reader *r, char *const *word)
{
    const int rc = read_once(r, word, &r->spawn, &r->level->spawn);
    const struct rm_platformer_point at = r->level->spawn;
    if (rc == 0 &&
        r->level->tile[at.y / RM_PLATFORMER_TILE][at.x / RM_PLATFORMER_TILE] == RM_PLATFORMER_FULL)
        return fail(r, "spawn is inside of a full tile");
    return rc;
}

static int read_opener(struct reader *r, char *const *word)
{
    return read_once(r, word, &r->opener, &r->level->opener);
}

static int read_exit(struct reader *r, char *const *word)
{
    return read_once(r, word, &r->exit, &r->level->exit);
}

static int read_mine(struct reader *r, char *const *word)
{
    if (r->level->mines == RM_PLATFORMER_MINES)
        return fail(r, "more than %d mines", RM_PLATFORMER_MINES);
    struct rm_platformer_mine *mine = &r->level->mine[r->level->mines++];
    const char *state = word[3];
    if (strlen(state) != 1 || state[0] < '0' || state[0] > '2')
        return fail(r, "the state of a mine is '%.24s', must be 0 deadly, 1 safe or 2 toggling",
                    state);
    mine->state = (uint8_t)(state[0] - '0');
    return read_point(r, word + 1, &mine->at);
}

static int read_door(struct reader *r, char *const *word)
{
    if (r->level->doors == RM_PLATFORMER_DOORS)
        return fail(r, "more than %d doors", RM_PLATFORMER_DOORS);
    struct rm_platformer_door *door = &r->level->door[r->level->doors++];
    if (strcmp(word[3], "v") != 0 && strcmp(word[3], "h") != 0)
        return fail(r, "a door is '%.24s', must be v or h", word[3]);
    door->vertical = word[3][0] == 'v';
    const int rc = read_point(r, word + 1, &door->at);
    return rc < 0 ? rc : read_point(r, word + 4, &door->opener);
}

static const struct thing {
    const char *name;
    uint32_t words;
    const char *form;
    int (*read)(struct reader *r, char *const *word);
} things[] = {
    {"spawn", 3, "spawn x y", read_spawn},      {"switch", 3, "switch x y", read_opener},
    {"exit", 3, "exit x y", read_exit},         {"mine", 4, "mine x y state", read_mine},
    {"door", 6, "door x y v|h x y", read_door},
};

static int read_thing(struct reader *r, char *text)
{
    char *word[WORDS + 1], *rest = NULL;
    uint32_t words = 0;
    for (char *w = strtok_r(text, " \t", &rest); w && words <= WORDS;
         w = strtok_r(NULL, " \t", &rest))
        word[words++] = w;
    if (words == 0)
        return 0;
    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++)
        if (strcmp(word[0], things[i].name) == 0)
            return words == things[i].words ? things[i].read(r, word)
                                            : fail(r, "must be: %s", things[i].form);
    if (strspn(word[0], letters) == strlen(word[0]))
        return fail(r, "a row of tiles follows the level's %d", INNER_ROWS);
    return fail(r, "'%.24s' is not spawn, switch, exit, mine or door", word[0]);
}

/* --- a file ----------------------------------------------------------------------------------- */

static int read_lines(struct reader *r, char *text)
{
    for (char *line = text; line; r->line++) {
        char *end = strchr(line, '\n');
        char *const next = end ? end + 1 : NULL;
        end = end ? end : line + strlen(line);
        if (end > line && end[-1] == '\r')
            end--;
        *end = 0;
        if (!next && !*line)
            break;
        const int rc = r->rows < INNER_ROWS ? read_row(r, line) : read_thing(r, line);
        if (rc < 0)
            return rc;
        line = next;
    }
    if (r->rows < INNER_ROWS)
        return fail(r, "the level ends after %u rows of tiles, must have %d", r->rows, INNER_ROWS);
    if (!r->spawn || !r->opener || !r->exit)
        return fail(r, "the level ends without a '%s'",
                    !r->spawn    ? "spawn"
                    : !r->opener ? "switch"
                                 : "exit");
    return 0;
}

int rm_platformer_read(struct rm_platformer_level *level, const char *path, char *error,
                       size_t error_size)
{
    struct reader r = {.level = level, .line = 1, .error = error, .error_size = error_size};
    char *text;
    size_t size;
    rm_text_file_name(path, r.name);
    int rc = rm_text_file_read(path, TEXT_MAX, &text, &size, error, error_size);
    if (rc < 0)
        return rc;
    memset(level, 0, sizeof *level);
    memset(level->tile, RM_PLATFORMER_FULL, sizeof level->tile);
    rc = read_lines(&r, text);
    free(text);
    return rc;
}
