"""The learners, a file each: compositions of parts where they are, with what their paper leaves open."""
