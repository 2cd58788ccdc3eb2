"""Work on paths: queues before stages, the scheduler, batching, preemption, costs."""
