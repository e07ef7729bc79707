"""The learners, one file each, with the choices that their papers leave open."""
