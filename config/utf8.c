#include "config/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t rm_utf8_length(const char *text, size_t left)
{
    const unsigned char *p = (const unsigned char *)text;
    if (left == 0)
        return 0;
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc2 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf5 ? 4
                             : 0;
    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, beyond U+10FFFF. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

void rm_utf8_repair(char *text)
{
    size_t left = strlen(text);
    while (left) {
        size_t n = rm_utf8_length(text, left);
        unsigned char c = (unsigned char)*text;
        /* C1 too: U+009B begins what ESC and '[' do. */
        const bool control = c < 0x20 || c == 0x7f ||
                             (n == 2 && c == 0xc2 && ((unsigned char)text[1] & 0xe0) == 0x80);
        if (n == 0 || (control && c != '\n')) {
            if (n == 0)
                n = 1;
            memset(text, '?', n);
        }
        text += n;
        left -= n;
    }
}

void rm_utf8_line(char *text)
{
    rm_utf8_repair(text);
    for (; *text; text++)
        if (*text == '\n')
            *text = ';';
}
