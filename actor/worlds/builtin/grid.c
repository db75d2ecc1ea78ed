#include "actor/worlds/builtin/grid.h"

#include <stdio.h>
#include <string.h>

static uint32_t side(const struct rm_grid *grid)
{
    return grid->pixels ? grid->pixels : RM_GRID_PIXELS;
}

/* Appends as much as fits, and counts all of it. */
static void put(char *text, size_t size, size_t *used, const char *what)
{
    const size_t n = strlen(what);
    for (size_t i = 0; i < n; i++, ++*used)
        if (*used + 1 < size)
            text[*used] = what[i];
}

int rm_grid_text(const struct rm_grid *grid, const char *below, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t row = 0; row < grid->rows; row++) {
        for (uint32_t column = 0; column < grid->columns; column++) {
            put(text, size, &used, column ? " " : "");
            put(text, size, &used, grid->look(grid->env, grid->world, row, column)->glyph);
        }
        put(text, size, &used, "\n");
    }
    if (below) {
        put(text, size, &used, below);
        put(text, size, &used, "\n");
    }
    if (size > 0)
        text[used < size ? used : size - 1] = '\0';
    return (int)used;
}

int rm_grid_picture(const struct rm_grid *grid, uint8_t *rgb)
{
    const uint32_t pixels = side(grid);
    const size_t stride = (size_t)grid->columns * pixels * 3;
    for (uint32_t row = 0; row < grid->rows; row++, rgb += pixels * stride) {
        for (uint32_t column = 0; column < grid->columns; column++) {
            const struct rm_grid_look *look = grid->look(grid->env, grid->world, row, column);
            for (uint32_t x = 0; x < pixels; x++)
                memcpy(rgb + 3 * (size_t)(column * pixels + x), look->rgb, 3);
        }
        for (uint32_t y = 1; y < pixels; y++)
            memcpy(rgb + y * stride, rgb, stride);
    }
    return 0;
}

void rm_grid_describe(const struct rm_grid *grid, struct rm_env_spec *spec)
{
    spec->picture_width = grid->columns * side(grid);
    spec->picture_height = grid->rows * side(grid);
}
