"""The parts that all operations over HTTP share: access, typed requests, uploads, problem documents."""
