"""From a source to durable blocks: readers, files and their order, times, retries."""
