resource "aws_lb" "vllm_reports" {
  name               = "vllm-reports"
  internal           = true
  load_balancer_type = "application"
  subnets            = var.private_subnets
  security_groups    = [aws_security_group.lb.id]
  # idle_timeout not set
  access_logs {
    bucket  = var.log_bucket
    enabled = true
  }
}
resource "aws_lb_target_group" "vllm" {
  port                 = 8000
  protocol             = "HTTP"
  target_type          = "ip"
  vpc_id               = var.vpc_id
  deregistration_delay = 120
  health_check { path = "/health" interval = 15 timeout = 5 unhealthy_threshold = 4 }
}
