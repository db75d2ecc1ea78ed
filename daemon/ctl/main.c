#include "daemon/ctl/command.h"

int main(int argc, char **argv)
{
    return rm_ctl_main(argc, argv);
}
