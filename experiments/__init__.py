"""The demonstration, emulated platform, case studies, measured data and simulator of queues."""
