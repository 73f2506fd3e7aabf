/* Clients of the file server, each of which sends the same script of calls about its own file. */
#ifndef CLIENT_H
#define CLIENT_H

#define CLIENTS 16

void client_run(void *client); /* a job for the work list; the client's number as a pointer */
void client_report(void);

#endif
