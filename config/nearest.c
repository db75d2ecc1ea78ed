/* nearest: finds the word that a mistyped word probably means. */
#include "config/config.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define WORD_MAX 96

/* Ignores case; '-' and '_' are equal. */
static char folded(char c)
{
    return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

/* Edit distance (Levenshtein 1966), in which two neighbours that changed places are one edit, too
 * (Damerau 1964; no part of the word is edited twice). Three rows at a time. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3]; /* i - 1, i - 2 */
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const char x = folded(a[i - 1]), y = folded(b[j - 1]);
            size_t best = above[j - 1] + (x != y);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

/* A word begun and not ended is one change away. */
static bool begins(const char *word, size_t n, const char *candidate)
{
    size_t i = 0;
    while (i < n && folded(word[i]) == folded(candidate[i]))
        i++;
    return n >= 3 && i == n;
}

const char *rm_nearest(const char *word, const char *const *candidates)
{
    size_t n = strlen(word), best = SIZE_MAX;
    const char *found = NULL;
    if (n == 0 || n > WORD_MAX)
        return NULL;
    for (; *candidates; candidates++) {
        size_t m = strlen(*candidates);
        if (m == 0 || m > WORD_MAX)
            continue;
        size_t d = begins(word, n, *candidates) ? n < m : distance(word, n, *candidates, m);
        size_t longer = n > m ? n : m;
        /* Near: at most a third of the letters differ, and at least two are right. */
        if (d <= (longer + 2) / 3 && d + 1 < longer + (d == 0) && d < best) {
            best = d;
            found = *candidates;
        }
    }
    return found;
}
