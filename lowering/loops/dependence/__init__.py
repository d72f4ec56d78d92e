"""The dependence analysis of the loop IR: which accesses of which iterations may touch the same elements of a buffer.

`accesses` finds the accesses of a function and where each is, as linear forms (`loops.ranges`). Three questions are asked of
them: may two iterations of a loop touch the same element (`independence`), may an iteration load what an earlier one has stored
(`loop_carried`), and in which order are the elements of a buffer loaded and stored, so that another may lie on the same bytes
(`access_order`). May import what `loops` may.
"""
