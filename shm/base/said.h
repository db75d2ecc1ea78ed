/* said: what a worker prints on standard error goes to the journal of its run, a line an entry
 * (daemon/printed.h). A line may begin with how grave it is, as services tell systemd's journal;
 * one that does not counts as information. */
#ifndef RM_SHM_BASE_SAID_H
#define RM_SHM_BASE_SAID_H

#define RM_SAID_ERROR   "<3>"
#define RM_SAID_WARNING "<4>"
#define RM_SAID_NOTICE  "<5>"

#endif
