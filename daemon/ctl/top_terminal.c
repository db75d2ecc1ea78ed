/* Apart from the rest of `top` because term.h takes hundreds of short names. Asked before
 * newterm(), which keeps memory when it fails. */
#include "daemon/ctl/top.h"

#include <curses.h>
#include <term.h>
#include <unistd.h>

bool rm_top_terminal_known(void)
{
    int found = 0;
    if (setupterm(NULL, STDOUT_FILENO, &found) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}
