"""How the hits of each site are delivered to the clauses of its probes.

A hit in Python takes about a microsecond, and most programs need not know of it at once. So each site has a delivery
(`kinst.runtime.trap.delivery`): it is decided once for what is enabled, from what clauses read and do
(`kinst.runtime.clauses.deliveries`), for all clauses of a probe (`combining`) and for all probes and the displaced
instruction of a site (`deciding`). The engine, the tracer and -x explain read it.

Whatever the deliveries, a program prints what it prints when each hit is dispatched. That is one rule:

    counted, batched as alike    only add to aggregations, whose content does not depend on the order; their clauses
                                 have run before anything reads aggregations, and before tracing ends (`fold`)
    batched in order             clauses run for each, in the order of the hits of all CPUs, before any hit is
                                 dispatched, any timer fires, a thread is forgotten, or something is printed (`settle`);
                                 what they do can neither fault nor be observed before that
    dispatched                   clauses run now, with what was settled before them

Records are taken in order, and for each the clauses run or it is kept: none is lost. Before sites, enabled probes or
the columns of records change, all records are settled.
"""
