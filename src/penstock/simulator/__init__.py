"""The host in virtual time: workloads, the simulation, and what it found."""
