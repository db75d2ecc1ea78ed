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

/* Edit distance (Levenshtein 1966), one row at a time. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (folded(a[i - 1]) != folded(b[j - 1]));
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
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
